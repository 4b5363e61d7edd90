// Writes the login of a device that was linked before: PACKAGES FOLDER OWN_ADDRESS.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, folder, id] = process.argv.slice(2);
const { BufferJSON, initAuthCreds } = await import(pathToFileURL(join(packages, "baileys", "lib", "index.js")).href);
mkdirSync(join(folder, "login"), { recursive: true });
const login = { ...initAuthCreds(), me: { id, name: "bot" }, registered: true };
writeFileSync(join(folder, "login", "creds.json"), JSON.stringify(login, BufferJSON.replacer));
