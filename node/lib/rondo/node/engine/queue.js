// A queue in an array: each end costs the same for any length.
// SPDX-License-Identifier: MIT

"use strict";

const ENOUGH = 64; // empty places are removed when they are most of the array, and so many

class Queue {
  constructor() {
    this.items = [];
    this.from = 0;
  }

  get length() {
    return this.items.length - this.from;
  }

  get first() {
    return this.items[this.from];
  }

  push(item) {
    this.items.push(item);
  }

  shift() {
    const item = this.items[this.from];
    this.items[this.from] = undefined;
    this.from += 1;
    if (this.from >= ENOUGH && this.from * 2 >= this.items.length) this.keep(this.items.slice(this.from));
    return item;
  }

  // Only these stay.
  keep(items) {
    this.items = items;
    this.from = 0;
  }

  * [Symbol.iterator]() {
    for (let at = this.from; at < this.items.length; at += 1) yield this.items[at];
  }
}

module.exports = { Queue };
