// Collects the body of a request before the application is called. It is in memory: its limits are max_body_bytes for
// one request, and total_body_bytes for all of them together. A body counts until the answer to its request is over.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");

const EMPTY = Buffer.alloc(0);
const PART_BYTES = 256; // what each part takes besides its bytes

let held = 0;

// From the call of the application on. Returns what has to be given to `release`.
function hold(bytes) {
  const count = bytes.length + PART_BYTES;
  held += count;
  return count;
}

// The answer is over: nobody can read rack.input any more, nor the files of its form, and they keep no memory.
function release(input, count) {
  held -= count;
  for (const one of [input, ...(input.files || [])]) {
    one.closed = true;
    one.bytes = EMPTY;
  }
}

// The status of a refusal by the length that the client names, or 0.
function refusal(facts) {
  const length = facts.length || 0;
  if (length > limits.maxBodyBytes) return 413;
  return held + length > limits.totalBodyBytes ? 507 : 0;
}

class Collector {
  // @param source what `data` and `close` come from
  // @param done called with 0 and the whole body, or with the status of a refusal; not when the client leaves before
  constructor(source, done) {
    this.source = source;
    this.done = done;
    this.parts = [];
    this.size = 0;
    this.held = 0; // of `held`
    this.take = (part) => this.add(part);
    source.on("data", this.take);
    source.on("close", () => this.release());
    this.watch();
  }

  add(part) {
    this.parts.push(part);
    this.size += part.length;
    this.held += part.length + PART_BYTES;
    held += part.length + PART_BYTES;
    if (this.size > limits.maxBodyBytes) return this.finish(413);
    if (held > limits.totalBodyBytes) return this.finish(507);
    return this.watch();
  }

  watch() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.finish(408), limits.bodyTimeout);
  }

  release() {
    clearTimeout(this.timer);
    held -= this.held;
    this.held = 0;
  }

  finish(status) {
    const { done, parts } = this;
    if (done === null) return;
    this.done = null;
    this.parts = null;
    this.source.off("data", this.take);
    this.release();
    done(status, parts.length === 1 ? parts[0] : Buffer.concat(parts));
  }
}

// Of a request that Node reads.
function collect(req, done) {
  const collector = new Collector(req, done);
  req.on("end", () => collector.finish(0));
}

// From a socket that Node has given away. `head` is what has come already; what comes behind the body is dropped.
function collectFrom(socket, head, length, done) {
  const collector = new Collector(socket, (status, bytes) => done(status, bytes.subarray(0, length)));
  const look = () => {
    if (collector.size >= length) collector.finish(0);
  };
  socket.on("data", look);
  collector.add(head);
  look();
}

module.exports = { collect, collectFrom, hold, refusal, release };
