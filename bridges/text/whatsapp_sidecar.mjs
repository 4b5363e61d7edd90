// A linked WhatsApp device that speaks JSON lines: events on standard output, requests on standard input.
//
//   node whatsapp_sidecar.mjs PACKAGES FOLDER [URL]
//
// PACKAGES is the node_modules that holds baileys, FOLDER keeps the login and what was not taken yet, URL is another
// server. The end of standard input ends this program: whoever started it has stopped or died.

import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [packages, folder, url] = process.argv.slice(2);
const RESTART = 515; // asked for once after a code was scanned
const REMEMBERED = 1000;
const LONGEST = 300_000; // of a message as JSON: our reader takes a line of three times as many bytes, and no longer one

const say = (type, fields = {}, then) => process.stdout.write(`${JSON.stringify({ type, ...fields })}\n`, then);

// Libraries below print session keys to the console.
for (const name of ["debug", "error", "info", "log", "trace", "warn"]) console[name] = () => {};
const silent = { level: "silent", child: () => silent };
for (const name of ["debug", "error", "fatal", "info", "trace", "warn"]) silent[name] = () => {};

process.umask(0o077);
const spool = join(folder, "spool");
mkdirSync(spool, { recursive: true });

let baileys;
try {
  baileys = await import(pathToFileURL(join(packages, "baileys", "lib", "index.js")).href);
} catch {
  say("broken", {}, () => process.exit(1));
  await new Promise(() => {});
}

let socket;
let open = false;
const keys = new Map(); // file of a message -> how its sender is told that it was read
const told = new Set();

// -- what comes in ----------------------------------------------------------------------------------------------------

const KINDS = {
  imageMessage: "image",
  videoMessage: "video",
  ptvMessage: "video",
  audioMessage: "audio",
  stickerMessage: "sticker",
};
const SILENT = new Set(["protocolMessage", "reactionMessage", "encReactionMessage", "pollUpdateMessage", "keepInChatMessage"]);

function shaped({ key, message }) {
  const content = baileys.normalizeMessageContent(message);
  const type = content && baileys.getContentType(content);
  if (!type || SILENT.has(type)) return null;
  const body = content[type];
  const context = body?.contextInfo ?? {};
  const typed = type === "conversation" || type === "extendedTextMessage";
  return {
    id: key.id,
    chat: key.remoteJid,
    chat_alt: key.remoteJidAlt || null,
    sender: key.participant || null,
    sender_alt: key.participantAlt || null,
    own: Boolean(key.fromMe),
    text: typeof body === "string" ? body : (body?.text ?? body?.caption ?? ""),
    file: typed ? null : (KINDS[type] ?? "file"),
    name: body?.fileName ?? null,
    mentions: context.mentionedJid ?? [],
    quoted: context.quotedMessage || context.stanzaId ? (context.participant ?? "") : null,
  };
}

let received = 0;
const place = () => join(spool, `${Date.now()}-${String(received++).padStart(9, "0")}.json`);

function receive({ messages, type }) {
  for (const sent of messages) {
    const found = shaped(sent);
    if (!found || (type === "append" && found.own)) continue;
    const written = JSON.stringify(found);
    if (written.length > LONGEST) continue; // nobody types that; told again and again, it would end every run
    const file = place();
    writeFileSync(`${file}.new`, written);
    renameSync(`${file}.new`, file);
    keys.set(file, sent.key);
    if (keys.size > REMEMBERED) keys.delete(keys.keys().next().value);
    if (open) tell(found, file);
  }
}

function tell(found, file) {
  told.add(file);
  say("message", { message: found, file });
}

function tellAll() {
  for (const name of readdirSync(spool).sort()) {
    const file = join(spool, name);
    if (!name.endsWith(".json")) rmSync(file);
    else if (!told.has(file)) tell(JSON.parse(readFileSync(file, "utf8")), file);
  }
}

// -- what goes out ----------------------------------------------------------------------------------------------------

const requests = {
  async send({ chat, text, id }) {
    await socket.sendMessage(chat, { text, linkPreview: null }, { messageId: id });
  },
  async typing({ chat }) {
    await socket.sendPresenceUpdate("composing", chat);
  },
  async taken({ file, read }) {
    rmSync(file, { force: true });
    told.delete(file);
    const key = keys.get(file);
    if (read && key && !key.fromMe) await socket.readMessages([key]);
  },
};

async function obey(line) {
  const { type, call, ...fields } = JSON.parse(line);
  try {
    await requests[type](fields);
    if (call !== undefined) say("done", { call });
  } catch (error) {
    if (call !== undefined) say("failed", { call, code: error?.output?.statusCode ?? error?.data ?? 0 });
  }
}

createInterface({ input: process.stdin })
  .on("line", (line) => void obey(line))
  .on("close", () => process.exit(0));

// -- the login --------------------------------------------------------------------------------------------------------

// The library's own store may be cut off in the middle of a file, and a login that is lost has to be scanned anew. Here
// every file is whole at any moment, and written before anything else goes on.
const login = join(folder, "login");
mkdirSync(login, { recursive: true });
const fileOf = (name) => join(login, `${name.replaceAll("/", "__").replaceAll(":", "-")}.json`);

function keep(name, value) {
  const file = fileOf(name);
  if (!value) return rmSync(file, { force: true });
  writeFileSync(`${file}.new`, JSON.stringify(value, baileys.BufferJSON.replacer), { flush: true });
  return renameSync(`${file}.new`, file);
}

function kept(name) {
  try {
    return JSON.parse(readFileSync(fileOf(name), "utf8"), baileys.BufferJSON.reviver);
  } catch {
    return null;
  }
}

function keptKey(type, id) {
  const value = kept(`${type}-${id}`);
  const typed = type === "app-state-sync-key" && value; // the one kind that has to be of its class
  return typed ? baileys.proto.Message.AppStateSyncKeyData.fromObject(value) : value;
}

const auth = {
  creds: kept("creds") ?? baileys.initAuthCreds(),
  keys: {
    get: async (type, ids) => Object.fromEntries(ids.map((id) => [id, keptKey(type, id)])),
    set: async (values) => {
      for (const [type, some] of Object.entries(values)) {
        for (const [id, value] of Object.entries(some)) keep(`${type}-${id}`, value);
      }
    },
  },
};

// -- the link ---------------------------------------------------------------------------------------------------------

function connect() {
  socket = baileys.makeWASocket({
    auth,
    keepAliveIntervalMs: 20_000, // a deaf link counts as lost 5 s after the next look
    logger: silent,
    markOnlineOnConnect: false,
    shouldSyncHistoryMessage: () => false,
    syncFullHistory: false,
    ...(url ? { waWebSocketUrl: url } : {}),
  });
  socket.ev.on("creds.update", () => keep("creds", auth.creds));
  socket.ev.on("messages.upsert", receive);
  socket.ev.on("connection.update", ({ connection, lastDisconnect, qr }) => {
    if (qr) say("qr", { text: qr });
    if (connection === "open") {
      const me = auth.creds.me ?? {};
      say("open", { ids: [me.id, me.lid].filter(Boolean) });
      open = true;
      tellAll();
    }
    if (connection !== "close") return undefined;
    const code = lastDisconnect?.error?.output?.statusCode ?? 0;
    if (code === RESTART) return connect();
    return say("closed", { code }, () => process.exit(1));
  });
}

connect();
