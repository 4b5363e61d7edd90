"use strict";
// Loaded into the embedded host before its own code (NODE_OPTIONS=--require). The packed host lacks one package that
// its workspace endpoints import for a single error class, and without it none of them load. Where the package is
// missing, and only there, an in-memory stand-in takes its place; nothing is written anywhere.

const { registerHooks } = require("node:module");

const MISSING = "@deepseek-ai/dsh-host-directory-picker";
const STAND_IN = "data:text/javascript,export class DirectoryPickerError extends Error {}";

// Programs the host starts for a session must not inherit this hook: their Node may be too old to know it.
delete process.env.NODE_OPTIONS;

registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier !== MISSING) return nextResolve(specifier, context);
    try {
      return nextResolve(specifier, context);
    } catch (error) {
      if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
      return { url: STAND_IN, format: "module", shortCircuit: true };
    }
  },
});
