// The env of a request, in the order of keys that the server on MRI has. A header's name is turned into its key once.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");
const ruby = require("./ruby");
const { fromLatin1 } = require("./text");

const EMPTY = Buffer.alloc(0);
const MOST_NAMES = 1000;
const LONGEST_NAME = 64; // of those that are kept
// Names that become no key: the application must not see them (docs/REQUEST.md).
const DROPPED = new Set(["proxy", "content-length", "transfer-encoding"]);

// What decides how a request is served. Node's own `headers` would take longer to make than all of the env.
class Facts {
  constructor() {
    this.host = null;
    this.hosts = 0;
    this.authority = null; // of a target in absolute form
    this.length = null;
    this.coding = null; // the transfer coding
    this.upgrade = false;
    this.accept = null;
    this.isLast = false; // the client asks for the end of the connection
    this.isTooLarge = false;
  }
}

function joined(before, value) {
  return before === null ? value : `${before}, ${value}`;
}

const NOTHING = () => {};
const TOO_LARGE = (facts) => { facts.isTooLarge = true; };
const FACTS = new Map([
  ["host", (facts, value) => { facts.host = value; facts.hosts += 1; }],
  ["content-length", (facts, value) => { facts.length = Number(value); }],
  ["transfer-encoding", (facts, value) => { facts.coding = joined(facts.coding, value); }],
  ["upgrade", (facts) => { facts.upgrade = true; }],
  ["accept", (facts, value) => { facts.accept = joined(facts.accept, value); }],
  ["connection", (facts, value) => { facts.isLast ||= /(?:^|,)\s*close\s*(?:,|$)/i.test(value); }],
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
    const fact = text.length > limits.maxNameBytes ? TOO_LARGE : FACTS.get(lower) || NOTHING;
    name = { key: keyOf(text, lower), fact };
    if (names.size < MOST_NAMES && text.length <= LONGEST_NAME) names.set(text, name);
  }
  return name;
}

// Looks at the header fields once, before the body is read.
function factsOf(raw) {
  const facts = new Facts();
  for (let at = 0; at < raw.length; at += 2) {
    const value = raw[at + 1];
    if (value.length > limits.maxValueBytes) facts.isTooLarge = true;
    nameOf(raw[at]).fact(facts, value);
  }
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

// Path and query of a target.
function split(target, isAbsolute) {
  const rest = isAbsolute ? target.replace(/^\w+:\/\/[^/?]*/, "").replace(/^(?!\/)/, "/") : target;
  const query = rest.indexOf("?");
  return query < 0 ? [rest, ""] : [rest.slice(0, query), rest.slice(query + 1)];
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
  const [path, query] = split(req.url, facts.authority !== null);
  const env = new Map();
  env.set("PATH_INFO", fromLatin1(path));
  env.set("rack.response_finished", []);
  env.set("REQUEST_METHOD", req.method);
  env.set("QUERY_STRING", fromLatin1(query));
  env.set("SERVER_PROTOCOL", req.httpVersionMinor === 1 ? "HTTP/1.1" : "HTTP/1.0");
  env.set("rack.upgrade?", upgrade);
  env.set("SCRIPT_NAME", "");
  const [name, port] = cachedAuthority(facts.authority || facts.host || "localhost", scheme);
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
  if (facts.authority !== null) env.set("HTTP_HOST", facts.authority);
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
