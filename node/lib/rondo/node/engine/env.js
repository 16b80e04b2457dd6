// The env of a request, in the order of keys that the server on MRI has. A header's name is turned into its key once.
// SPDX-License-Identifier: MIT

"use strict";

const ruby = require("./ruby");
const { fromLatin1 } = require("./text");

const EMPTY = Buffer.alloc(0);
const MOST_NAMES = 1000;
// Names that become no key: the application must not see them (docs/REQUEST.md).
const DROPPED = new Set(["proxy", "content-length", "transfer-encoding"]);

// What decides how a request is served. Node's own `headers` would take longer to make than all of the env.
class Facts {
  constructor() {
    this.host = null;
    this.length = null;
    this.chunked = false;
    this.upgrade = false;
    this.accept = null;
  }
}

const NOTHING = () => {};
const FACTS = new Map([
  ["host", (facts, value) => { facts.host ??= value; }],
  ["content-length", (facts, value) => { facts.length = Number(value); }],
  ["transfer-encoding", (facts) => { facts.chunked = true; }],
  ["upgrade", (facts) => { facts.upgrade = true; }],
  ["accept", (facts, value) => { facts.accept = facts.accept === null ? value : `${facts.accept}, ${value}`; }],
]);

function keyOf(name, lower) {
  if (DROPPED.has(lower) || name.includes("_")) return null;
  if (lower === "content-type") return "CONTENT_TYPE";
  return `HTTP_${name.toUpperCase().replaceAll("-", "_")}`;
}

// What is known of a name: its key, and which fact it is.
const names = new Map();
function nameOf(text) {
  let name = names.get(text);
  if (name === undefined) {
    const lower = text.toLowerCase();
    name = { key: keyOf(text, lower), fact: FACTS.get(lower) || NOTHING };
    if (names.size < MOST_NAMES) names.set(text, name);
  }
  return name;
}

// Looks at the header fields once, before the body is read.
function factsOf(raw) {
  const facts = new Facts();
  for (let at = 0; at < raw.length; at += 2) nameOf(raw[at]).fact(facts, raw[at + 1]);
  return facts;
}

// Repeated fields are joined.
function addHeaders(env, raw) {
  for (let at = 0; at < raw.length; at += 2) {
    const { key } = nameOf(raw[at]);
    if (key === null) continue;
    const value = fromLatin1(raw[at + 1]);
    const before = env.get(key);
    env.set(key, before === undefined ? value : before + (key === "HTTP_COOKIE" ? "; " : ", ") + value);
  }
}

// Host and port of an authority; the port of the scheme if it names none.
function authority(text, scheme) {
  const match = /^(\[[^\]]*\]|[^:]*)(?::(\d*))?$/.exec(text);
  if (!match) return [text, scheme === "https" ? "443" : "80"];
  return [match[1], match[2] || (scheme === "https" ? "443" : "80")];
}

// The last authority is kept: clients of a server mostly name the same one.
let lastText = null;
let lastParts = null;
function cachedAuthority(text, scheme) {
  if (text !== lastText) {
    lastParts = authority(text, scheme);
    lastText = text;
  }
  return lastParts;
}

// A target in absolute form becomes path, query and authority.
function split(target) {
  let host = null;
  let rest = target;
  if (target.charCodeAt(0) !== 47) {
    const match = /^https?:\/\/([^/?#]*)([^#]*)/i.exec(target);
    if (match) {
      host = match[1].replace(/^.*@/, "");
      rest = match[2].startsWith("/") ? match[2] : `/${match[2]}`;
    }
  }
  const query = rest.indexOf("?");
  return query < 0 ? [rest, "", host] : [rest.slice(0, query), rest.slice(query + 1), host];
}

function remoteAddress(socket) {
  const address = socket.remoteAddress;
  if (address === undefined) return "";
  return address.startsWith("::ffff:") ? address.slice(7) : address;
}

// The peer does not change as long as its connection lives.
function cachedAddress(socket) {
  return socket.rondoAddress === undefined ? (socket.rondoAddress = remoteAddress(socket)) : socket.rondoAddress;
}

// `upgrade` is nil, "websocket" or "sse"; `body` the bytes of the request, null without a body.
function makeEnv(req, facts, scheme, upgrade, body) {
  const [path, query, host] = split(req.url);
  const env = new Map();
  env.set("PATH_INFO", fromLatin1(path));
  env.set("rack.response_finished", []);
  env.set("REQUEST_METHOD", req.method);
  env.set("QUERY_STRING", fromLatin1(query));
  env.set("SERVER_PROTOCOL", req.httpVersionMinor === 1 ? "HTTP/1.1" : "HTTP/1.0");
  env.set("rack.upgrade?", upgrade);
  env.set("SCRIPT_NAME", "");
  const [name, port] = cachedAuthority(host || facts.host || "localhost", scheme);
  env.set("SERVER_NAME", name);
  env.set("SERVER_PORT", port);
  env.set("REMOTE_ADDR", cachedAddress(req.socket));
  env.set("rack.url_scheme", scheme);
  env.set("rack.errors", errors);
  env.set("rack.input", makeInput(body === null ? EMPTY : body));
  env.set("rack.hijack?", false);
  if (scheme === "https") env.set("HTTPS", "on");
  if (body !== null) env.set("CONTENT_LENGTH", String(body.length));
  addHeaders(env, req.rawHeaders);
  return env;
}

let inputClass = null;
let errors = null;

// Called once, after the application has been loaded.
function prepare() {
  inputClass = ruby.constant("Rondo", "Input");
  errors = ruby.constant("Rondo", "Errors").$new();
}

function makeInput(body) {
  const input = inputClass.$allocate();
  input.bytes = body;
  input.position = 0;
  input.closed = false;
  return input;
}

module.exports = { cachedAddress, factsOf, makeEnv, prepare };
