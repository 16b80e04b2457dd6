// An answer by uWebSockets.js, with the names of Node's ServerResponse that this engine uses. The library writes
// `content-length` or `transfer-encoding`, `date` and its own name.
// SPDX-License-Identifier: MIT

"use strict";

const { EventEmitter } = require("node:events");
const { BEYOND_ASCII } = require("../text");

// What it writes itself.
const OWN = new Set(["content-length", "transfer-encoding", "connection", "date"]);
// Larger bodies are passed on in pieces of this size. What the library keeps of one is not counted.
const PIECE = 65536;
const COMMENT = ":\n\n";

// A value has a character for each byte.
function toField(value) {
  return BEYOND_ASCII.test(value) ? Buffer.from(value, "latin1") : value;
}

class Exchange extends EventEmitter {
  // @param raw the response of the library
  constructor(raw, req) {
    super();
    this.raw = raw;
    this.req = req;
    this.socket = null;
    this.shouldKeepAlive = true;
    this._header = undefined; // heads are given by `writeHead`
    this.status = 0;
    this.reason = "";
    this.fields = null;
    this.length = null; // of the body, if the head says it
    this.begun = false; // the head has left
    this.isBlocked = false; // the client is slower
    this.queue = [];
    this.queued = 0; // bytes
    this.taken = 0; // bytes that the library has taken
    this.ending = false;
    this.ended = false; // nothing more can be done with `raw`
    this.destroyed = false;
    this.writableFinished = false;
    raw.onAborted(() => this.over(true));
  }

  get headersSent() {
    return this.fields !== null;
  }

  get remoteAddress() {
    return this.socket.remoteAddress;
  }

  get writableLength() {
    return this.queued;
  }

  get writableNeedDrain() {
    return this.isBlocked;
  }

  // Those of Node's that have no meaning here.
  removeHeader() {}
  detachSocket() {}

  // The library sends a head only with bytes behind it. In a stream of events that can be a comment, which clients ignore.
  flushHeaders() {
    const at = this.fields.findIndex((field, index) => index % 2 === 0 && field.toLowerCase() === "content-type");
    if (at >= 0 && this.fields[at + 1].startsWith("text/event-stream")) this.write(COMMENT);
  }

  // @param fields names and values, in turns
  writeHead(status, reason, fields) {
    this.status = status;
    this.reason = reason;
    this.fields = fields;
    for (let at = 0; at < fields.length; at += 2) {
      if (fields[at].toLowerCase() === "content-length") this.length = Number(fields[at + 1]);
    }
  }

  passHead() {
    const { raw, fields } = this;
    this.begun = true;
    raw.writeStatus(`${this.status} ${this.reason}`);
    for (let at = 0; at < fields.length; at += 2) {
      if (!OWN.has(fields[at].toLowerCase())) raw.writeHeader(fields[at], toField(fields[at + 1]));
    }
  }

  // @return whether the client keeps up
  write(part, done) {
    if (this.ended || this.ending) return false;
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    for (let at = 0; at < bytes.length; at += PIECE) this.queue.push(bytes.subarray(at, at + PIECE));
    this.queued += bytes.length;
    this.flush();
    if (done) this.whenEmpty(done);
    return !this.isBlocked;
  }

  whenEmpty(done) {
    if (this.queued === 0) {
      setImmediate(done);
    } else {
      this.once("drain", done);
    }
  }

  end(part) {
    if (this.ended || this.ending) return;
    const isWhole = !this.begun && this.queue.length === 0;
    if (isWhole && (part === undefined || part.length <= PIECE)) {
      this.endWhole(part);
      return;
    }
    if (part !== undefined && part.length > 0) this.write(part);
    this.ending = true;
    this.flush();
  }

  endWhole(part) {
    this.raw.cork(() => {
      this.passHead();
      if (this.req.method === "HEAD" || this.status === 204 || this.status === 304) {
        this.endBodiless();
      } else {
        this.raw.end(part === undefined ? "" : part, this.isLast);
      }
    });
    this.over(false);
  }

  // A length that is not given is 0 for the library, once there is a second argument.
  endBodiless() {
    if (this.length === null && !this.isLast) {
      this.raw.endWithoutBody();
    } else {
      this.raw.endWithoutBody(this.length === null ? undefined : this.length, this.isLast);
    }
  }

  get isLast() {
    return !this.shouldKeepAlive;
  }

  // Passes on what waits, as long as the client takes it.
  flush() {
    if (this.isBlocked || this.ended) return;
    this.raw.cork(() => {
      if (!this.begun) this.begin();
      while (this.queue.length > 0 && !this.isBlocked && !this.ended) this.pass(this.queue[0]);
    });
    if (this.ending && !this.isBlocked && !this.ended && this.queue.length === 0) this.finish();
  }

  // A body with a known length cannot tell the library that the connection ends: the client is asked to end it.
  begin() {
    this.passHead();
    if (this.isLast && this.length !== null) this.raw.writeHeader("connection", "close");
    this.raw.onWritable((offset) => this.goOn(offset));
  }

  pass(piece) {
    if (this.length === null) {
      this.isBlocked = !this.raw.write(piece);
      this.drop();
      return;
    }
    const before = this.raw.getWriteOffset();
    const [taken, isComplete] = this.raw.tryEnd(piece, this.length);
    if (isComplete) {
      this.drop();
      this.over(false);
    } else if (taken) {
      this.drop();
    } else {
      this.keep(piece, this.raw.getWriteOffset() - before);
    }
  }

  drop() {
    const { length } = this.queue.shift();
    this.queued -= length;
    this.taken += length;
  }

  // The library has taken only this many bytes of a piece.
  keep(piece, size) {
    this.isBlocked = true;
    this.queue[0] = piece.subarray(size);
    this.queued -= size;
    this.taken += size;
    if (this.queue[0].length === 0) this.queue.shift();
  }

  // The client takes more. An empty cork sends what the library has kept itself: it does not do that by itself.
  goOn() {
    this.isBlocked = false;
    this.raw.cork(() => {});
    this.flush();
    if (!this.isBlocked && !this.ended) this.emit("drain");
    return true;
  }

  finish() {
    if (this.length === null) {
      this.raw.cork(() => this.raw.end(undefined, this.isLast));
      this.over(false);
    } else {
      setImmediate(() => this.destroy()); // fewer bytes than the head says; the library sends them after this turn
    }
  }

  // The end of an answer that has fewer bytes than its head says: what is there leaves before the connection ends.
  cut() {
    if (this.ended || this.ending) return;
    this.ending = true;
    if (!this.begun && this.queue.length === 0) {
      this.raw.cork(() => {
        this.begin();
        this.raw.tryEnd("", this.length);
      });
    }
    this.flush();
  }

  destroy() {
    if (!this.ended) this.raw.close(); // calls back before it returns
  }

  // The library has given the connection to a WebSocket.
  upgraded() {
    this.ended = true;
    this.emit("close");
  }

  over(isAborted) {
    if (this.ended) return;
    this.ended = true;
    this.destroyed = isAborted;
    this.queue = [];
    this.queued = 0;
    if (isAborted) {
      this.req.emit("close");
    } else {
      this.writableFinished = true;
      this.emit("finish");
    }
    this.emit("close");
  }
}

module.exports = { Exchange, toField };
