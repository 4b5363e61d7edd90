// A bot of the vendor's other library. It answers one message in every way a bot can and prints what it saw.
import * as lark from "@larksuiteoapi/node-sdk";

const silent = { error() {}, warn() {}, info() {}, debug() {}, trace() {} };
const app = { appId: process.env.APP_ID, appSecret: process.env.APP_SECRET, domain: process.env.API, logger: silent };
const client = new lark.Client(app);

const codeOf = async (call) => {
  try {
    return (await call()).code;
  } catch (error) {
    return error.response?.data?.code ?? String(error);
  }
};

const answer = async ({ message, sender }) => {
  const { text } = JSON.parse(message.content);
  const content = (words) => JSON.stringify({ text: words });
  const send = (words, uuid) =>
    client.im.v1.message.create({
      params: { receive_id_type: "chat_id" },
      data: { receive_id: message.chat_id, msg_type: "text", content: content(words), uuid },
    });
  const once = await send(`heard: ${text}`, "the same");
  const again = await send("never shown", "the same");
  await client.im.v1.message.reply({
    path: { message_id: message.message_id },
    data: { msg_type: "text", content: content("in its topic"), reply_in_thread: true, uuid: "reply" },
  });
  const shape = {
    schema: "2.0",
    config: { streaming_mode: true },
    body: { elements: [{ tag: "markdown", content: "", element_id: "answer" }] },
  };
  const created = await client.cardkit.v1.card.create({ data: { type: "card_json", data: JSON.stringify(shape) } });
  const path = { card_id: created.data.card_id };
  await client.im.v1.message.create({
    params: { receive_id_type: "chat_id" },
    data: {
      receive_id: message.chat_id,
      msg_type: "interactive",
      content: JSON.stringify({ type: "card", data: path }),
      uuid: "card",
    },
  });
  const fill = (sequence, words) =>
    client.cardkit.v1.cardElement.content({
      path: { ...path, element_id: "answer" },
      data: { content: words, sequence, uuid: `fill ${sequence} ${words}` },
    });
  const filled = await codeOf(() => fill(2, "grown"));
  const late = await codeOf(() => fill(1, "too late"));
  await client.cardkit.v1.card.settings({
    path,
    data: { settings: JSON.stringify({ config: { streaming_mode: false } }), sequence: 3, uuid: "end" },
  });
  const over = await codeOf(() => fill(4, "after the end"));
  const elsewhere = await codeOf(() =>
    client.im.v1.message.create({
      params: { receive_id_type: "chat_id" },
      data: { receive_id: "oc_nobody", msg_type: "text", content: content("x"), uuid: "elsewhere" },
    }),
  );
  const same = once.data.message_id === again.data.message_id;
  console.log(JSON.stringify({ from: sender.sender_id.open_id, same, filled, late, over, elsewhere }));
};

let heard = 0;
const dispatcher = new lark.EventDispatcher({ logger: silent }).register({
  "im.message.receive_v1": async (event) => {
    heard += 1;
    if (heard === 1) answer(event);
    else console.log(JSON.stringify({ heard: JSON.parse(event.message.content).text.length }));
  },
});

new lark.WSClient(app).start({ eventDispatcher: dispatcher });
