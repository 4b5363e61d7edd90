// The platform's own plugin, its modules as they are published, through one login and one conversation.
// Arguments: its dist/src folder, the platform's address, the file for what was seen.
import fs from "node:fs";

const [source, base, report] = process.argv.slice(2);
const load = (name) => import(`file://${source}/${name}.js`);

// The modules name the official host in a constant; only that is replaced.
const real = globalThis.fetch;
globalThis.fetch = (url, options) => real(String(url).replace("https://ilinkai.weixin.qq.com", base), options);

const api = await load("api/api");
const { startWeixinLoginWithQr, waitForWeixinLogin } = await load("auth/login-qr");
const { sendMessageWeixin } = await load("messaging/send");
const { weixinMessageToMsgContext } = await load("messaging/inbound");
const { downloadAndDecryptBuffer } = await load("cdn/pic-decrypt");

const seen = {};
const start = await startWeixinLoginWithQr({ apiBaseUrl: base });
seen.login = await waitForWeixinLogin({ sessionKey: start.sessionKey, apiBaseUrl: base, timeoutMs: 20_000 });

const account = { baseUrl: seen.login.baseUrl, token: seen.login.botToken };
seen.started = await api.notifyStart(account);
seen.updates = await api.getUpdates({ ...account, get_updates_buf: "" });
const [message] = seen.updates.msgs;
seen.context = weixinMessageToMsgContext(message, seen.login.accountId);

const to = message.from_user_id;
const opts = { ...account, contextToken: message.context_token };
const config = await api.getConfig({ ...account, ilinkUserId: to, contextToken: message.context_token });
await api.sendTyping({ ...account, body: { ilink_user_id: to, typing_ticket: config.typing_ticket, status: 1 } });
seen.sent = await sendMessageWeixin({ to, text: "你好 from the plugin", opts });
seen.refused = await sendMessageWeixin({ to, text: "x".repeat(5001), opts }).then(String, String);
const { media, aeskey } = message.item_list[1].image_item;
const key = Buffer.from(aeskey, "hex").toString("base64");
const picture = await downloadAndDecryptBuffer(media.encrypt_query_param, key, `${base}/c2c`, "test");
seen.picture = picture.toString();
seen.empty = await api.getUpdates({ ...account, get_updates_buf: seen.updates.get_updates_buf, timeoutMs: 100 });
seen.stopped = await api.notifyStop(account);
seen.stale = await api.getUpdates({ ...account, token: "old-token-fake", get_updates_buf: "" });

fs.writeFileSync(report, JSON.stringify(seen));
process.exit(0);
