// What Redis answers (RESP, version 2), out of any cut of its bytes. It takes the place of the client's own decoder, which
// has no limits: Redis may belong to another party, so a reply is limited in bytes, depth and elements before memory is
// taken for it. Strings are Buffers.
// SPDX-License-Identifier: MIT

"use strict";

const DEPTH = 8;
// Of the lines between which everything else stands.
const LINE_MAX = 65536;
// Bytes; no element is shorter.
const ELEMENT_MIN = 4;
const NUMBER = /^-?\d{1,19}$/;
const CR = 13;
const LF = 10;
const NONE = Buffer.alloc(0);
const MORE = Symbol("more");

// These bytes are not a reply, or one above the limits.
class Invalid extends Error {}

class Replies {
  // @param limit bytes of a reply
  // @param handlers { onReply, onErrorReply }, which the client replaces while it is subscribed
  // @param ErrorReply the client's class for what Redis refuses
  constructor(limit, handlers, ErrorReply) {
    this.limit = limit;
    this.onReply = handlers.onReply;
    this.onErrorReply = handlers.onErrorReply;
    this.ErrorReply = ErrorReply;
    this.reset();
  }

  reset() {
    this.parts = []; // what has come and is not read
    this.held = 0; // its bytes
    this.needed = 0; // as many of them make sense
    this.bytes = NONE;
    this.at = 0;
    this.blob = null; // length of the string that comes next
    this.open = []; // arrays that are not complete: { items, count }
    this.spent = 0;
  }

  // Throws an Error: nothing that comes after has a meaning.
  write(chunk) {
    this.parts.push(chunk);
    this.held += chunk.length;
    if (this.held < this.needed) return;
    this.bytes = this.parts.length === 1 ? chunk : Buffer.concat(this.parts);
    this.at = 0;
    this.readAll();
    const rest = this.bytes.subarray(this.at);
    this.parts = rest.length > 0 ? [rest] : [];
    this.held = rest.length;
    this.bytes = NONE;
    this.at = 0;
  }

  readAll() {
    try {
      for (let value = this.nextReply(); value !== MORE; value = this.nextReply()) {
        this.spent = 0;
        if (value instanceof this.ErrorReply) this.onErrorReply(value);
        else this.onReply(value);
      }
    } catch (error) {
      const reason = error instanceof Invalid ? error.message : "a reply that belongs to no command";
      throw new Error(`not the Redis protocol: ${reason}`);
    }
  }

  nextReply() {
    for (;;) {
      const value = this.nextValue();
      if (value === MORE) return MORE;
      const reply = this.closeArrays(value);
      if (reply !== MORE) return reply;
    }
  }

  // A value, or MORE when its bytes are still to come. An array that is opened is no value yet.
  nextValue() {
    for (;;) {
      if (this.blob !== null) return this.readBlob();
      const line = this.nextLine();
      if (line === MORE) return MORE;
      const text = line.toString("latin1", 1);
      switch (String.fromCharCode(line[0])) {
        case "$": if (!this.beginBlob(number(text))) return null; break;
        case "*": {
          const value = this.beginArray(number(text));
          if (value !== MORE) return value;
          break;
        }
        case ":": return number(text);
        case "+": return Buffer.from(line.subarray(1));
        case "-": return new this.ErrorReply(line.toString("utf8", 1).replace(/[\r\n]/g, " "));
        default: throw new Invalid("no type of reply begins with this byte");
      }
    }
  }

  nextLine() {
    let stop = this.bytes.indexOf("\r\n", this.at, "latin1");
    if (stop < 0) stop = this.bytes.length;
    const length = stop - this.at;
    if (length > LINE_MAX) throw new Invalid(`a line of more than ${LINE_MAX} bytes`);
    this.needed = length + 1;
    if (stop === this.bytes.length) return MORE;
    const line = this.bytes.subarray(this.at, stop);
    this.spend(length + 2);
    this.at = stop + 2;
    return line;
  }

  // Returns false for a string that is nil.
  beginBlob(length) {
    if (length === -1) return false;
    if (length < 0) throw new Invalid("a length below zero");
    this.spend(length + 2);
    this.blob = length;
    return true;
  }

  readBlob() {
    const end = this.at + this.blob;
    this.needed = this.blob + 2;
    if (this.bytes.length < end + 2) return MORE;
    if (this.bytes[end] !== CR || this.bytes[end + 1] !== LF) throw new Invalid("a string does not end where it should");
    const value = this.bytes.subarray(this.at, end);
    this.at = end + 2;
    this.blob = null;
    return value;
  }

  beginArray(count) {
    if (count === -1) return null;
    if (count < 0) throw new Invalid("a length below zero");
    if (this.open.length >= DEPTH) throw new Invalid(`more than ${DEPTH} arrays inside each other`);
    if (this.spent + count * ELEMENT_MIN > this.limit) this.refuse();
    if (count === 0) return [];
    this.open.push({ items: [], count });
    return MORE;
  }

  // Adds a value to the array that waits for it, and that to its own when it is full.
  closeArrays(value) {
    let whole = value;
    while (this.open.length > 0) {
      const { items, count } = this.open.at(-1);
      items.push(whole);
      if (items.length < count) return MORE;
      whole = this.open.pop().items;
    }
    return whole;
  }

  spend(bytes) {
    this.spent += bytes;
    if (this.spent > this.limit) this.refuse();
  }

  refuse() {
    throw new Invalid(`a reply of more than ${this.limit} bytes`);
  }
}

function number(text) {
  if (!NUMBER.test(text)) throw new Invalid("not a number");
  return Number(text);
}

module.exports = { Replies };
