// The head of an answer: which fields of the application are sent, and how the message is framed.
// SPDX-License-Identifier: MIT

"use strict";

const { STATUS_CODES } = require("node:http");
const ruby = require("./ruby");
const { BEYOND_ASCII, toLatin1 } = require("./text");

// RFC 9110 has other words than Node for these.
const REASONS = { ...STATUS_CODES, 103: "Early Hints", 413: "Content Too Large", 422: "Unprocessable Content" };
for (const code of [305, 418, 509, 510]) delete REASONS[code];
REASONS[305] = "Use Proxy";

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\r\n\0]/;

// What the server does with a field.
const PLAIN = 0;
const LENGTH = 1;
const DROPPED = 2;
const CONNECTION = 3;
const DATE = 4;
const UPGRADE = 5;
const INVALID = 6;
const KINDS = new Map([
  ["content-length", LENGTH], ["transfer-encoding", DROPPED], ["connection", CONNECTION], ["date", DATE],
  ["upgrade", UPGRADE],
]);
const MOST_NAMES = 1000;
const names = new Map();

function classify(name) {
  if (name.startsWith("rack.")) return DROPPED;
  if (!TOKEN.test(name)) return INVALID;
  return KINDS.get(name.toLowerCase()) || PLAIN;
}

function kindOf(name) {
  let kind = names.get(name);
  if (kind === undefined) {
    kind = classify(name);
    if (names.size < MOST_NAMES) names.set(name, kind);
  }
  return kind;
}

function refuse(message) {
  return ruby.error(["Rondo", "ResponseError"], message);
}

function quote(value) {
  return value.$inspect();
}

function checked(value) {
  if (!ruby.isString(value)) throw refuse(`a header value is not a String: ${quote(value)}`);
  if (CONTROL.test(value)) throw refuse(`a header value has a control byte: ${quote(value)}`);
  return value;
}

// The fields of one answer, as lines in the order in which they leave.
class Head {
  constructor() {
    this.text = "";
    this.length = null; // of the body, as the application says
    this.close = false;
    this.dated = false;
    this.isBytes = false; // it has bytes beyond ASCII
  }

  add(name, value) {
    if (!ruby.isString(name)) throw refuse(`a header name is not a String: ${quote(name)}`);
    const kind = kindOf(name);
    if (kind === DROPPED) return;
    if (kind === INVALID) throw refuse(`a header name is not a token: ${quote(name)}`);
    if (Array.isArray(value)) {
      value.forEach((one) => this.addOne(kind, name, one));
    } else {
      this.addOne(kind, name, value);
    }
  }

  // Node writes a head with bytes beyond ASCII as it is only if no text follows it in the same write.
  addOne(kind, name, value) {
    let text = checked(value).toString();
    if (BEYOND_ASCII.test(text)) {
      this.isBytes = true;
      text = toLatin1(value);
    }
    if (kind === PLAIN) {
      this.put(name, text);
    } else {
      this.addSpecial(kind, name, text);
    }
  }

  put(name, text) {
    this.text += `${name}: ${text}\r\n`;
  }

  addSpecial(kind, name, text) {
    if (kind === CONNECTION) {
      this.close ||= /(?:^|,)\s*close\s*(?:,|$)/i.test(text);
    } else if (kind === LENGTH) {
      if (!/^\d+$/.test(text)) throw refuse(`content-length is not a number: ${quote(text)}`);
      this.length = Number(text);
    } else {
      if (kind === DATE) this.dated = true;
      this.put(name, text);
      if (kind === UPGRADE) this.put("connection", "upgrade");
    }
  }
}

// Whatever the application gives as headers: a Hash, or anything with `each`.
function readHead(headers) {
  const head = new Head();
  if (headers === ruby.nil || (!headers.$$is_hash && !ruby.has(headers, "each"))) {
    throw refuse("the headers have no each");
  }
  if (headers.$$is_hash && headers.$$keys === undefined) {
    for (const [name, value] of headers) head.add(name, value);
  } else {
    ruby.eachPair(headers, (name, value) => head.add(name, value));
  }
  return head;
}

let date = null;
// The text of this second.
function dateNow() {
  if (date === null) {
    date = new Date().toUTCString();
    setTimeout(() => { date = null; }, 1000 - (Date.now() % 1000)).unref();
  }
  return date;
}

function reason(status) {
  return REASONS[status] || "";
}

function fieldsOf(text) {
  return text.split("\r\n").slice(0, -1).flatMap((line) => {
    const colon = line.indexOf(": ");
    return [line.slice(0, colon), line.slice(colon + 2)];
  });
}

// Gives a head to a response of Node, which sends it with the first bytes of the body. Node's `writeHead` makes the
// same lines in a fifth of the time of a whole request; where Node keeps its head in another way, it is called.
function writeHead(res, status, text, isChunked, isLast) {
  if (isLast) res.shouldKeepAlive = false;
  if (res._header !== null) return writeFields(res, status, text, isChunked, isLast);
  res.statusCode = status;
  res.chunkedEncoding = isChunked;
  res._last = isLast;
  res._header = `HTTP/1.1 ${status} ${reason(status)}\r\n${text}\r\n`;
  return undefined;
}

function writeFields(res, status, text, isChunked, isLast) {
  res.sendDate = false;
  res.useChunkedEncodingByDefault = isChunked;
  if (!isLast) res.removeHeader("connection");
  res.writeHead(status, reason(status), fieldsOf(text));
}

module.exports = { dateNow, fieldsOf, readHead, reason, refuse, writeHead };
