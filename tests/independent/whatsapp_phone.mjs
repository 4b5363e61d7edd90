// WhatsApp's server and the phone of an account, as far as linking a device and being told messages needs them.
//
//   node whatsapp_phone.mjs PACKAGES CERTIFICATE_SOURCE
//
// PACKAGES holds the client library, whose encoders are used the other way round; CERTIFICATE_SOURCE is a file of
// another vendor's server with the certificate that the client wants to see. Events are lines on standard output,
// requests lines on standard input: {"scan": CODE}, {"tell": {"attrs": …, "message": …}}, {"end": CODE}.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [packages, source] = process.argv.slice(2);
const load = (...path) => import(pathToFileURL(join(packages, ...path)).href);
const { Curve, NOISE_MODE, NOISE_WA_HEADER, aesDecryptGCM, aesEncryptGCM, decodeBinaryNode, encodeBinaryNode, hkdf,
  hmacSign, proto, sha256 } = await load("baileys", "lib", "index.js");
const { WebSocketServer } = await load("ws", "wrapper.mjs");
const certificate = Buffer.from(/CERT_CHAIN = Buffer\.from\("([^"]+)"/.exec(readFileSync(source, "utf8"))[1], "base64");

const SERVER = "s.whatsapp.net";
const EMPTY = Buffer.alloc(0);
const DEVICE = { jid: "15550000000:7@s.whatsapp.net", lid: "999:7@lid" };
const account = Curve.generateKeyPair(); // the phone's

const say = (event) => console.log(JSON.stringify(event));
const nonce = (count) => {
  const made = Buffer.alloc(12);
  made.writeUInt32BE(count, 8);
  return made;
};

// The server's side of Noise XX.
class Noise {
  hash = Buffer.from(NOISE_MODE);
  salt = this.hash;
  key = this.hash;
  count = 0;
  sent = 0;
  heard = 0;
  ephemeral = Curve.generateKeyPair();

  constructor() {
    this.mix(NOISE_WA_HEADER);
  }

  mix(data) {
    this.hash = sha256(Buffer.concat([this.hash, data]));
  }

  derive(secret) {
    const both = hkdf(secret, 64, { salt: this.salt, info: "" });
    return [Buffer.from(both.subarray(0, 32)), Buffer.from(both.subarray(32))];
  }

  agree(mine, theirs) {
    [this.salt, this.key] = this.derive(Curve.sharedKey(mine.private, theirs));
    this.count = 0;
  }

  seal(data) {
    const sealed = aesEncryptGCM(data, this.key, nonce(this.count++), this.hash);
    this.mix(sealed);
    return sealed;
  }

  open(data) {
    const opened = aesDecryptGCM(data, this.key, nonce(this.count++), this.hash);
    this.mix(data);
    return opened;
  }

  greet(hello) {
    const fixed = Curve.generateKeyPair();
    this.mix(hello.ephemeral);
    this.mix(this.ephemeral.public);
    this.agree(this.ephemeral, hello.ephemeral);
    const sealed = this.seal(Buffer.from(fixed.public));
    this.agree(fixed, hello.ephemeral);
    const serverHello = { ephemeral: this.ephemeral.public, static: sealed, payload: this.seal(certificate) };
    return proto.HandshakeMessage.encode({ serverHello }).finish();
  }

  finish(end) {
    this.agree(this.ephemeral, this.open(end.static));
    const payload = proto.ClientPayload.decode(this.open(end.payload));
    [this.incoming, this.outgoing] = this.derive(EMPTY);
    return payload;
  }
}

// One link of a device.
class Link {
  noise = new Noise();
  waiting = EMPTY;
  step = 0;

  constructor(socket) {
    this.socket = socket;
    this.turn = Promise.resolve();
    socket.on("close", () => say({ left: true }));
    socket.on("message", (data) => {
      this.turn = this.turn.then(() => this.read(data)).catch((error) => say({ fault: String(error) }));
    });
  }

  async read(data) {
    this.waiting = Buffer.concat([this.waiting, data]);
    if (this.step === 0 && this.waiting.indexOf(NOISE_WA_HEADER) === 0) {
      this.waiting = this.waiting.subarray(NOISE_WA_HEADER.length);
    }
    while (this.waiting.length >= 3 && this.waiting.length >= 3 + this.waiting.readUIntBE(0, 3)) {
      const frame = this.waiting.subarray(3, 3 + this.waiting.readUIntBE(0, 3));
      this.waiting = this.waiting.subarray(3 + frame.length);
      await this.take(frame);
    }
  }

  async take(frame) {
    this.step += 1;
    if (this.step === 1) {
      return this.put(this.noise.greet(proto.HandshakeMessage.decode(frame).clientHello));
    }
    if (this.step === 2) {
      return this.begin(this.noise.finish(proto.HandshakeMessage.decode(frame).clientFinish));
    }
    const opened = aesDecryptGCM(frame, this.noise.incoming, nonce(this.noise.heard++), EMPTY);
    return this.hear(await decodeBinaryNode(opened));
  }

  put(bytes) {
    const length = Buffer.alloc(3);
    length.writeUIntBE(bytes.length, 0, 3);
    this.socket.send(Buffer.concat([length, bytes]));
  }

  send(tag, attrs, content) {
    const node = encodeBinaryNode({ tag, attrs, content });
    this.put(aesEncryptGCM(node, this.noise.outgoing, nonce(this.noise.sent++), EMPTY));
  }

  begin({ devicePairingData, username }) {
    say({ login: devicePairingData ? "new" : Number(username) });
    if (!devicePairingData) return this.send("success", { t: String(Math.floor(Date.now() / 1000)), lid: DEVICE.lid });
    const refs = ["one", "two"].map((name) => ({ tag: "ref", attrs: {}, content: Buffer.from(`ref-${name}`) }));
    const pair = { tag: "pair-device", attrs: {}, content: refs };
    return this.send("iq", { from: SERVER, type: "set", id: "pair-1" }, [pair]);
  }

  hear({ tag, attrs, content }) {
    if (tag === "iq" && Array.isArray(content) && content[0].tag === "pair-device-sign") return this.linked(content[0]);
    if (tag === "iq" && attrs.type !== "result") {
      const count = { tag: "count", attrs: { value: "99" } };
      return this.send("iq", { from: SERVER, type: "result", id: attrs.id }, [count]);
    }
    if (tag === "receipt" || tag === "ack") say({ [tag]: attrs.type ?? attrs.class ?? "", id: attrs.id });
    return undefined;
  }

  // What the phone does with a code: it vouches for the device, with the secret only the code has.
  scan(code) {
    const [ref, , identity, secret] = code.split("#").pop().split(",");
    this.identity = Buffer.from(identity, "base64");
    const details = proto.ADVDeviceIdentity.encode({ rawId: 1, timestamp: 1, keyIndex: 3 }).finish();
    const accountSignature = Curve.sign(account.private, Buffer.concat([Buffer.from([6, 0]), details, this.identity]));
    const signed = proto.ADVSignedDeviceIdentity.encode({
      details, accountSignature, accountSignatureKey: account.public,
    }).finish();
    const vouched = { details: signed, hmac: hmacSign(signed, Buffer.from(secret, "base64")) };
    const proof = proto.ADVSignedDeviceIdentityHMAC.encode(vouched).finish();
    this.details = details;
    this.send("iq", { from: SERVER, type: "set", id: "pair-2" }, [
      { tag: "pair-success", attrs: {}, content: [
        { tag: "device-identity", attrs: {}, content: proof },
        { tag: "platform", attrs: { name: "fake" } },
        { tag: "device", attrs: DEVICE },
      ] },
    ]);
    say({ scanned: ref });
  }

  linked(node) {
    const { deviceSignature } = proto.ADVSignedDeviceIdentity.decode(node.content[0].content);
    const vouched = Buffer.concat([Buffer.from([6, 1]), this.details, this.identity, account.public]);
    say({ linked: Curve.verify(this.identity, vouched, deviceSignature), key: node.content[0].attrs["key-index"] });
    this.end(515);
  }

  tell({ attrs, message }) {
    const plain = proto.Message.encode(proto.Message.fromObject(message)).finish();
    const place = { id: randomBytes(8).toString("hex").toUpperCase(), t: "1749416383", notify: "Somebody", ...attrs };
    this.send("message", place, [{ tag: "plaintext", attrs: {}, content: plain }]);
  }

  end(code) {
    this.send("stream:error", { code: String(code) });
    this.socket.close();
  }
}

let link;
const server = createServer();
new WebSocketServer({ server }).on("connection", (socket) => {
  link = new Link(socket);
});
createInterface({ input: process.stdin })
  .on("line", (line) => {
    const [[what, value]] = Object.entries(JSON.parse(line));
    link[what](value);
  })
  .on("close", () => process.exit(0));
server.listen(0, "127.0.0.1", () => say({ port: server.address().port }));
