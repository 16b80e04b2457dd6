// Commands that are to be sent to Redis, or were sent and have no answer yet, within limits of number and bytes.
// SPDX-License-Identifier: MIT

"use strict";

// Of the protocol, around a word.
const WORD_BYTES = 16;

class Outbox {
  // @param onLost gets an entry that may or may not have been executed
  constructor(mostEntries, mostBytes, onLost) {
    this.mostEntries = mostEntries;
    this.mostBytes = mostBytes;
    this.onLost = onLost;
    this.waiting = [];
    this.first = 0;
    this.count = 0;
    this.bytes = 0;
  }

  // @param entry { words, size, number, isPublish, answer }
  // Returns false when there is no room.
  push(entry) {
    if (this.count >= this.mostEntries || this.bytes + entry.size > this.mostBytes) return false;
    this.count += 1;
    this.bytes += entry.size;
    this.waiting.push(entry);
    return true;
  }

  // The first that waits, if `allows` agrees with its number.
  shift(allows) {
    const entry = this.waiting[this.first];
    if (entry === undefined || !allows(entry.number)) return null;
    this.first += 1;
    if (this.first > 1000 || this.first === this.waiting.length) {
      this.waiting = this.waiting.slice(this.first);
      this.first = 0;
    }
    return entry;
  }

  done(entry) {
    this.count -= 1;
    this.bytes -= entry.size;
  }

  // What had no answer when the connection went, oldest first. A message goes out again, rather twice than never; what
  // else was sent may have been executed, which only the caller can judge.
  requeue(unanswered) {
    const again = unanswered.filter((entry) => entry.isPublish);
    this.waiting = again.concat(this.waiting.slice(this.first));
    this.first = 0;
    for (const entry of unanswered) {
      if (entry.isPublish) continue;
      this.done(entry);
      this.onLost(entry);
    }
  }

  limits() {
    return `${this.mostEntries} commands, ${Math.floor(this.mostBytes / 1048576)} MiB`;
  }
}

// Bytes of a command on the wire, not less.
function sizeOf(words) {
  return words.reduce((sum, word) => sum + Buffer.byteLength(word) + WORD_BYTES, WORD_BYTES);
}

module.exports = { Outbox, sizeOf };
