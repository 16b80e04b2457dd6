// The last messages of channels with a rule. It is in the memory of the master, or of the only process.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");
const { compile } = require("./patterns");
const { Queue } = require("./queue");

const ENTRY_BYTES = 128;
// How often messages are looked at that become too old.
const LOOK = 1000;

class History {
  // @param now gives milliseconds
  constructor(now = Date.now) {
    this.now = now;
    this.rules = new Map(); // name → { isPattern, matches, size, ttl }, the newest last
    this.kept = new Map(); // channel → { rule, messages }
    this.order = new Queue(); // the messages of all channels; the data of those that have gone is null
    this.bytes = 0;
    this.count = 0;
    this.lastId = 0;
    this.looking = null; // a timer while there are messages with a ttl
  }

  // `size` 0 removes the rule.
  setRule(name, isPattern, size, ttl) {
    const key = `${isPattern}:${name}`;
    this.rules.delete(key);
    if (size > 0) this.rules.set(key, { name, isPattern, matches: isPattern ? compile(name) : null, size, ttl });
    for (const [channel, entry] of this.kept) {
      entry.rule = this.ruleOf(channel);
      this.trim(channel, entry);
    }
    if (ttl > 0) this.watch();
  }

  // A rule for the channel itself wins over patterns, and a newer pattern over an older one.
  ruleOf(channel) {
    const own = this.rules.get(`false:${channel}`);
    if (own) return own;
    let found = null;
    for (const rule of this.rules.values()) {
      if (rule.isPattern && rule.matches(channel)) found = rule;
    }
    return found;
  }

  // Returns the id of the message, 0 if no rule keeps it.
  add(channel, data) {
    const rule = this.rules.size === 0 ? null : this.ruleOf(channel);
    if (!rule) return 0;
    this.lastId += 1;
    let entry = this.kept.get(channel);
    if (!entry) this.kept.set(channel, entry = { rule, messages: new Queue() });
    this.keep(entry, { channel, id: this.lastId, at: this.now(), data, size: sizeOf(data) });
    this.trim(channel, entry);
    this.keepWithin();
    return this.lastId;
  }

  keep(entry, message) {
    entry.messages.push(message);
    this.order.push(message);
    this.count += 1;
    this.bytes += message.size;
    if (entry.rule.ttl > 0) this.watch();
  }

  watch() {
    this.looking ??= setInterval(() => this.look(), LOOK).unref();
  }

  // The oldest message of a channel goes.
  drop(messages) {
    const message = messages.shift();
    message.data = null;
    this.bytes -= message.size;
    this.count -= 1;
  }

  // The limits of a channel: its size, and its ttl.
  trim(channel, { rule, messages }) {
    const size = rule ? rule.size : 0;
    const oldest = rule && rule.ttl > 0 ? this.now() - rule.ttl : 0;
    while (messages.length > size || (messages.length > 0 && messages.first.at < oldest)) this.drop(messages);
    if (messages.length === 0) this.kept.delete(channel);
  }

  // The limits of all channels together: the oldest messages go first.
  keepWithin() {
    while (this.count > limits.historyMessages || this.bytes > limits.historyBytes) {
      const { channel, data } = this.order.shift();
      if (data === null) continue;
      const { messages } = this.kept.get(channel);
      this.drop(messages);
      if (messages.length === 0) this.kept.delete(channel);
    }
    if (this.order.length > 2 * this.count + ENTRY_BYTES) {
      this.order.keep([...this.order].filter((message) => message.data !== null));
    }
  }

  // Messages that have become too old go, also when nobody publishes.
  look() {
    let isTimed = false;
    for (const [channel, entry] of this.kept) {
      if (entry.rule.ttl > 0) {
        this.trim(channel, entry);
        isTimed ||= entry.messages.length > 0;
      }
    }
    this.keepWithin();
    if (isTimed) return;
    clearInterval(this.looking);
    this.looking = null;
  }

  // Messages of a channel, or of all that a pattern matches, after an id or a time, oldest first.
  since(name, isPattern, place) {
    const found = [];
    if (place.id !== undefined && !(place.id >= 0 && place.id <= this.lastId)) return found;
    if (!isPattern) {
      this.collect(name, this.kept.get(name), place, found);
      return found;
    }
    const matches = compile(name);
    for (const [channel, entry] of this.kept) {
      if (matches(channel)) this.collect(channel, entry, place, found);
    }
    return found.sort((one, other) => one.id - other.id);
  }

  collect(channel, entry, place, found) {
    if (entry === undefined) return;
    const { ttl } = entry.rule;
    const oldest = ttl > 0 ? this.now() - ttl : 0;
    for (const message of entry.messages) {
      const isLater = place.time === undefined ? message.id > place.id : message.at > place.time;
      if (isLater && message.at >= oldest) found.push({ channel, id: message.id, data: message.data });
    }
  }
}

function sizeOf(data) {
  return data.length + ENTRY_BYTES;
}

module.exports = { History };
