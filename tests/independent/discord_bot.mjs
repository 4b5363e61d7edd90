// A bot of another vendor's library. It answers messages and a slash command, then prints what it saw, line by line.
import { Client, Events, GatewayIntentBits, Partials } from "discord.js";

const say = (seen) => console.log(JSON.stringify(seen));
const client = new Client({
  intents: [
    GatewayIntentBits.Guilds,
    GatewayIntentBits.GuildMessages,
    GatewayIntentBits.DirectMessages,
    GatewayIntentBits.MessageContent,
  ],
  partials: [Partials.Channel],
  allowedMentions: { parse: [] },
  rest: { api: process.env.API },
});

client.on(Events.ShardResume, () => say({ resumed: true }));
client.on(Events.ClientReady, () => say({ ready: client.user.username }));

client.on(Events.MessageCreate, async (message) => {
  if (message.author.id === client.user.id) return;
  const seen = { heard: message.content, server: message.guild?.name ?? null };
  if (message.guild && message.mentions.has(client.user) && !message.channel.isThread()) {
    const thread = await message.startThread({ name: "a thread" });
    await thread.send({ content: "in the thread", nonce: "1", enforceNonce: true });
    await thread.send({ content: "sent again", nonce: "1", enforceNonce: true });
    seen.again = await message.startThread({ name: "another" }).catch((error) => error.code);
  } else {
    const sent = await message.channel.send("x");
    await sent.edit(`edited: ${message.content}`);
    seen.long = await message.channel.send("x".repeat(2001)).catch((error) => error.code);
  }
  say(seen);
});

client.on(Events.InteractionCreate, async (interaction) => {
  const option = interaction.options.getString("argument");
  await interaction.deferReply();
  await interaction.followUp({ content: `${interaction.commandName} ${option}` });
  say({ picked: interaction.commandName, direct: interaction.inGuild() });
});

await client.login(process.env.TOKEN);
