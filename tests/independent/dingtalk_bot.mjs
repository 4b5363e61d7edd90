// The platform's own SDK as a bot that echoes. Arguments: the packages' folder, the platform's address.
import { createRequire } from "node:module";

const [modules, base] = process.argv.slice(2);
const require = createRequire(`${modules}/dingtalk-stream/dist/`);
const axios = require("axios");
const { DWClient, TOPIC_ROBOT } = require("dingtalk-stream");

// The package names the official host in a constant; only that is replaced.
axios.interceptors.request.use((config) => ({
  ...config,
  url: config.url.replace("https://api.dingtalk.com", base),
}));
console.info = () => {};
const tell = (fields) => console.log(JSON.stringify(fields));

const bot = new DWClient({ clientId: process.env.CLIENT_ID, clientSecret: process.env.CLIENT_SECRET, keepAlive: true });
bot.reconnectInterval = 50;
bot.heartbeat_interval = 200;
bot.registerCallbackListener(TOPIC_ROBOT, async (frame) => {
  const data = JSON.parse(frame.data);
  bot.socketCallBackResponse(frame.headers.messageId, "OK");
  const body = { msgtype: "text", text: { content: `echo ${data.text.content.trim()}` } };
  const answer = await axios.post(data.sessionWebhook, body);
  tell({ event: "text", id: data.msgId, text: data.text.content, errcode: answer.data.errcode });
});
await bot.connect();
tell({ event: "connected" });
