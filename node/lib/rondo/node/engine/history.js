// The last messages of channels with a rule. It is in the memory of the master, or of the only process.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");
const { compile } = require("./patterns");

const ENTRY_BYTES = 128;

class History {
  constructor() {
    this.rules = new Map(); // name → { isPattern, matches, size, ttl }, the newest last
    this.kept = new Map(); // channel → messages
    this.bytes = 0;
    this.count = 0;
    this.lastId = 0;
  }

  // `size` 0 removes the rule.
  setRule(name, isPattern, size, ttl) {
    const key = `${isPattern}:${name}`;
    this.rules.delete(key);
    if (size > 0) this.rules.set(key, { name, isPattern, matches: isPattern ? compile(name) : null, size, ttl });
    for (const [channel, messages] of this.kept) {
      if (!this.ruleOf(channel)) this.drop(channel, messages.length);
    }
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
    let messages = this.kept.get(channel);
    if (!messages) this.kept.set(channel, messages = []);
    messages.push({ id: this.lastId, at: Date.now(), data, size: sizeOf(data) });
    this.count += 1;
    this.bytes += sizeOf(data);
    if (messages.length > rule.size) this.drop(channel, messages.length - rule.size);
    this.keepWithin();
    return this.lastId;
  }

  // The oldest messages of a channel.
  drop(channel, count) {
    const messages = this.kept.get(channel);
    for (const message of messages.splice(0, count)) {
      this.bytes -= message.size;
      this.count -= 1;
    }
    if (messages.length === 0) this.kept.delete(channel);
  }

  // The limits of all channels together: the oldest messages go first.
  keepWithin() {
    while (this.count > limits.historyMessages || this.bytes > limits.historyBytes) {
      let oldest = null;
      for (const [channel, messages] of this.kept) {
        if (!oldest || messages[0].id < oldest.id) oldest = { channel, id: messages[0].id };
      }
      this.drop(oldest.channel, 1);
    }
  }

  // Messages of a channel, or of all that a pattern matches, after an id or a time, oldest first.
  since(name, isPattern, place) {
    const matches = isPattern ? compile(name) : (channel) => channel === name;
    const found = [];
    if (place.id !== undefined && !(place.id >= 0 && place.id <= this.lastId)) return found;
    for (const [channel, messages] of this.kept) {
      if (matches(channel)) this.collect(channel, messages, place, found);
    }
    return found.sort((one, other) => one.id - other.id);
  }

  collect(channel, messages, place, found) {
    const ttl = this.ruleOf(channel)?.ttl || 0;
    const oldest = ttl > 0 ? Date.now() - ttl : 0;
    for (const message of messages) {
      const isLater = place.time === undefined ? message.id > place.id : message.at > place.time;
      if (isLater && message.at >= oldest) found.push({ channel, id: message.id, data: message.data });
    }
  }
}

function sizeOf(data) {
  return data.length + ENTRY_BYTES;
}

module.exports = { History };
