// The platform's own SDK as a bot that echoes. Arguments: the package's folder, the platform's address.
import { createRequire } from "node:module";

const [modules, url] = process.argv.slice(2);
const { WSClient } = createRequire(`${modules}/`)("@wecom/aibot-node-sdk");

const tell = (fields) => console.log(JSON.stringify(fields));
const silent = { debug() {}, info() {}, warn() {}, error() {} };

const bot = new WSClient({
  botId: process.env.BOT_ID,
  secret: process.env.BOT_SECRET,
  wsUrl: url,
  heartbeatInterval: 100,
  reconnectInterval: 50,
  maxAuthFailureAttempts: 1,
  logger: silent,
});

bot.on("authenticated", () => tell({ event: "authenticated" }));
bot.on("error", (error) => tell({ event: "error", message: error.message }));
bot.on("event.disconnected_event", () => {
  tell({ event: "replaced" });
  process.exit(0);
});
bot.on("message.text", async (frame) => {
  const { text, from, chatid } = frame.body;
  await bot.replyStream(frame, `stream-${frame.body.msgid}`, "ec", false);
  const done = await bot.replyStream(frame, `stream-${frame.body.msgid}`, `echo ${text.content}`, true);
  const after = await bot.replyStream(frame, `stream-${frame.body.msgid}`, "more", true).then(() => 0, (e) => e.errcode);
  const content = { msgtype: "markdown", markdown: { content: "by the way" } };
  const sent = await bot.sendMessage(chatid ?? from.userid, content);
  const unknown = await bot.sendMessage("nobody", content).then(() => 0, (e) => e.errcode);
  tell({ event: "text", text: text.content, codes: [done.errcode, after, sent.errcode, unknown] });
});
bot.on("message.mixed", async (frame) => {
  const image = frame.body.mixed.msg_item.find((item) => item.image).image;
  const { buffer } = await bot.downloadFile(image.url, image.aeskey);
  tell({ event: "mixed", picture: buffer.toString() });
});
bot.connect();
