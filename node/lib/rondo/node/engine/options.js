// The command line of a build. lib/rondo/node/cli.rb has checked the words if it started this process.
// SPDX-License-Identifier: MIT

"use strict";

const fs = require("node:fs");
const { parseArgs } = require("node:util");
const settings = require("./settings");

const OPTIONS = {
  port: { type: "string", short: "p", default: "9292" },
  bind: { type: "string", short: "b" },
  secure: { type: "boolean", short: "s", default: false },
  "ca-file": { type: "string", short: "a" },
  "cert-file": { type: "string", short: "c" },
  "key-file": { type: "string", short: "k" },
  "log-file": { type: "string", short: "l" },
  "pid-file": { type: "string", short: "P" },
  "early-hints": { type: "boolean", default: false },
  redis: { type: "string", short: "r" },
  workers: { type: "string", short: "w", default: "0" },
  engine: { type: "string", default: "node" },
  "uws-file": { type: "string" },
  set: { type: "string", multiple: true, default: [] },
};

// What is wrong with the command line or with a file that it names.
class OptionError extends Error {}

function number(values, name, most) {
  const value = Number(values[name]);
  if (!/^\d+$/.test(values[name]) || value > most) {
    throw new OptionError(`--${name} must be a number up to ${most}, not ${JSON.stringify(values[name])}`);
  }
  return value;
}

function read(values, name) {
  if (values[name] === undefined) return undefined;
  try {
    return fs.readFileSync(values[name]);
  } catch (error) {
    throw new OptionError(`cannot read ${values[name]}: ${error.code}`);
  }
}

function tlsOf(values) {
  if (!values.secure) {
    const name = ["ca-file", "cert-file", "key-file"].find((one) => values[one] !== undefined);
    if (name) throw new OptionError(`--${name} needs --secure`); // and not a server in the clear
    return null;
  }
  if (!values["cert-file"] || !values["key-file"]) throw new OptionError("--secure needs --cert-file and --key-file");
  const ca = read(values, "ca-file");
  const tls = { ca, cert: read(values, "cert-file"), key: read(values, "key-file"),
                requestCert: ca !== undefined, rejectUnauthorized: ca !== undefined,
                files: { ca: values["ca-file"], cert: values["cert-file"], key: values["key-file"] } };
  checkFiles(tls);
  return tls;
}

// A worker that cannot use them would be started again and again.
function checkFiles({ ca, cert, key, files }) {
  const { X509Certificate } = require("node:crypto");
  const { createSecureContext } = require("node:tls");
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new OptionError(`cannot use the certificate ${files.cert} with the key ${files.key}: ${error.reason || error.message}`);
  }
  try {
    if (ca !== undefined) new X509Certificate(ca);
  } catch {
    throw new OptionError(`there is no certificate in ${files.ca}`); // Node itself would trust nobody
  }
}

// What uWebSockets.js has its own way for.
const NODE_ONLY = ["backlog", "close_timeout_ms", "head_timeout_ms", "keep_alive_timeout_ms", "max_connections",
                   "max_pipelined_requests", "total_pipelined_requests"];

function engineOf(values) {
  if (!["node", "uws"].includes(values.engine)) {
    throw new OptionError(`--engine must be node or uws, not ${JSON.stringify(values.engine)}`);
  }
  if (values.engine === "uws" && values["early-hints"]) throw new OptionError("--early-hints needs --engine node");
  // The library asks for a certificate, but it lets in a client that shows none.
  if (values.engine === "uws" && values["ca-file"]) throw new OptionError("--ca-file needs --engine node");
  const name = values.set.map((word) => word.split("=")[0]).find((one) => NODE_ONLY.includes(one));
  if (values.engine === "uws" && name) throw new OptionError(`--set ${name} needs --engine node`);
  return values.engine;
}

function applySettings(words) {
  for (const word of words) {
    const wrong = settings.set(word);
    if (wrong) throw new OptionError(wrong);
  }
}

// Throws OptionError with one line. The limits of `--set` hold from then on.
function parse(words) {
  let values;
  try {
    ({ values } = parseArgs({ args: words, options: OPTIONS, strict: true }));
  } catch (error) {
    throw new OptionError(error.message.split("\n")[0]);
  }
  applySettings(values.set);
  return {
    port: number(values, "port", 65535), host: values.bind, workers: number(values, "workers", 1024),
    tls: tlsOf(values), logFile: values["log-file"], pidFile: values["pid-file"],
    hints: values["early-hints"], redis: values.redis, engine: engineOf(values), uwsFile: values["uws-file"],
  };
}

module.exports = { OptionError, parse };
