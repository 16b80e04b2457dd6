// A request of uWebSockets.js, with the names that Node's requests have. What the library lends only for the time of a
// call is copied here.
// SPDX-License-Identifier: MIT

"use strict";

const { EventEmitter } = require("node:events");

const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,24}$/;
const LENGTH = /^\d{1,15}$/;
const MAPPED = Buffer.from("00000000000000000000ffff", "hex");

// The text of an address of 4 or 16 bytes (RFC 5952).
function addressOf(binary) {
  const bytes = Buffer.from(binary);
  if (bytes.length === 4) return bytes.join(".");
  if (bytes.length !== 16) return undefined;
  if (bytes.subarray(0, 12).equals(MAPPED)) return bytes.subarray(12).join(".");
  const groups = [];
  for (let at = 0; at < 16; at += 2) groups.push(bytes.readUInt16BE(at).toString(16));
  const text = groups.join(":");
  const runs = text.match(/\b0(?::0)+\b/g);
  if (runs === null) return text;
  const longest = runs.reduce((one, other) => (other.length > one.length ? other : one));
  const at = text.search(new RegExp(`(?:^|:)${longest}(?:$|:)`));
  const from = text[at] === ":" ? at + 1 : at;
  return `${text.slice(0, from).replace(/:$/, "")}::${text.slice(from + longest.length).replace(/^:/, "")}`;
}

// What is known of the connection.
class Peer {
  constructor(res, raw, isEncrypted) {
    this.res = res;
    this.remoteAddress = addressOf(raw.getRemoteAddress());
    this.remotePort = undefined; // the library does not tell it
    this.encrypted = isEncrypted;
  }

  get destroyed() {
    return this.res.destroyed;
  }

  // The library tells at once that a connection has ended.
  get writable() {
    return !this.res.destroyed;
  }

  // A complete answer has said already whether its connection ends.
  destroySoon() {
    this.res.cut();
  }
}

class Request extends EventEmitter {
  // @param request of the library, valid only now
  constructor(request) {
    super();
    const query = request.getQuery();
    this.method = request.getCaseSensitiveMethod();
    this.url = query === undefined ? request.getUrl() : `${request.getUrl()}?${query}`;
    this.httpVersionMajor = 1;
    this.httpVersionMinor = 1;
    this.rawHeaders = [];
    this.socket = null;
    this.joined = null;
    this.hasBody = false;
    this.framed = null; // the values of fields that say where the body ends
    request.forEach((name, value) => {
      this.rawHeaders.push(name, value);
      if (name === "content-length" || name === "transfer-encoding") {
        this.hasBody = true;
        this.framed = this.framed === null ? value : `${this.framed},${value}`;
      }
    });
  }

  get isChunked() {
    return this.framed !== null && !LENGTH.test(this.framed);
  }

  // The library is more generous than RFC 9112 about methods and about the end of a body.
  // @return 0, or the status of the refusal
  refusal() {
    if (!METHOD.test(this.method)) return 400;
    return this.framed === null || LENGTH.test(this.framed) || /^chunked$/i.test(this.framed) ? 0 : 400;
  }

  // Only few requests ask for it.
  get headers() {
    if (this.joined === null) {
      this.joined = {};
      for (let at = 0; at < this.rawHeaders.length; at += 2) {
        const [name, value] = this.rawHeaders.slice(at, at + 2);
        this.joined[name] = this.joined[name] === undefined ? value : `${this.joined[name]}, ${value}`;
      }
    }
    return this.joined;
  }

  // The body, part by part. The library takes back the memory of each part.
  read(raw) {
    if (!this.hasBody) return;
    raw.onData((part, isLast) => {
      if (part.byteLength > 0) this.emit("data", Buffer.from(part.slice(0)));
      if (isLast) this.emit("end");
    });
  }
}

module.exports = { Peer, Request, addressOf };
