// A bot of another vendor's library. It answers one /start, then tries what the platform refuses and prints what it saw.
import { Bot } from "grammy";

const bot = new Bot(process.env.TOKEN, { client: { apiRoot: process.env.API } });

const refused = async (call) => {
  try {
    await call();
    return "not refused";
  } catch (error) {
    return [error.error_code, error.description];
  }
};

bot.command("start", async (ctx) => {
  await bot.api.setMyCommands([{ command: "start", description: "Say hello" }]);
  const sent = await ctx.reply(`heard: ${ctx.match}`);
  await ctx.api.editMessageText(ctx.chat.id, sent.message_id, `edited: ${ctx.match}`);
  const seen = {
    me: ctx.me.username,
    long: await refused(() => ctx.reply("x".repeat(4097))),
    same: await refused(() => ctx.api.editMessageText(ctx.chat.id, sent.message_id, `edited: ${ctx.match}`)),
    file: (await ctx.api.getFile("f")).file_path,
  };
  console.log(JSON.stringify(seen));
});

await bot.start();
