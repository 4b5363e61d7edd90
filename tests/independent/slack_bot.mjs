// A bot of another vendor's library in Socket Mode. It answers one message and one command and prints what it saw.
import bolt from "@slack/bolt";

const app = new bolt.App({
  token: process.env.BOT_TOKEN,
  appToken: process.env.APP_TOKEN,
  socketMode: true,
  clientOptions: { slackApiUrl: process.env.API, retryConfig: { retries: 0 } },
});

const refused = async (call) => {
  try {
    await call();
    return "not refused";
  } catch (error) {
    return error.data?.error ?? String(error);
  }
};

app.message(async ({ message, say, client }) => {
  const { channel, ts } = await say({ text: `heard: ${message.text}`, thread_ts: message.thread_ts });
  await client.chat.update({ channel, ts, text: `edited: ${message.text}` });
  const seen = {
    me: (await client.auth.test()).user_id,
    long: await refused(() => client.chat.update({ channel, ts, text: "x".repeat(4001) })),
    gone: await refused(() => client.chat.update({ channel, ts: "1.000001", text: "x" })),
    private: (await client.conversations.info({ channel })).channel.is_im,
  };
  console.log(JSON.stringify(seen));
});

app.command("/history", async ({ command, ack, respond }) => {
  await ack();
  await respond(`picked: ${command.text}`);
});

await app.start();
