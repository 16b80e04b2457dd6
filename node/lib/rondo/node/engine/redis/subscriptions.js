// What is to be subscribed at Redis, what Redis has confirmed on the connection there is, and which of its messages are
// handed on. Every change has a number, so that a message published after it can wait until Redis has confirmed it.
// Changes are state: of each channel there is the last one, and none while there is no connection.
// SPDX-License-Identifier: MIT

"use strict";

class Subscriptions {
  // @param deliver gets channel and message as bytes
  // @param refused gets a channel and the reason
  constructor(deliver, refused) {
    this.deliver = deliver;
    this.refused = refused;
    this.wanted = new Map(); // key → { channel, isPattern, take }
    this.asked = 0;
    this.forgetLink();
  }

  // The connection is closed: Redis has forgotten the subscriptions.
  forgetLink() {
    this.link = null;
    this.isBusy = false;
    this.confirmed = 0;
    this.sent = 0;
    this.changes = new Map(); // key → { channel, isPattern, take, wanted }
    this.last = null; // the newest message, and the patterns that it has come for
  }

  add(channel, isPattern) {
    const key = `${isPattern}:${channel}`;
    if (this.wanted.has(key)) return;
    const take = isPattern
      ? (message, name) => this.takeMatched(channel, name, message)
      : (message, name) => this.handOn(name, message, []);
    const entry = { channel, isPattern, take };
    this.wanted.set(key, entry);
    this.change(key, { ...entry, wanted: true });
  }

  remove(channel, isPattern) {
    const key = `${isPattern}:${channel}`;
    const entry = this.wanted.get(key);
    if (!entry) return;
    this.wanted.delete(key);
    this.change(key, { ...entry, wanted: false });
  }

  // A second word about a channel takes back the first, which Redis has not heard.
  change(key, change) {
    this.asked += 1;
    if (this.link === null) return;
    if (this.changes.has(key)) this.changes.delete(key);
    else this.changes.set(key, change);
  }

  // Whether a message published after this change would come back.
  reached(number) {
    return this.wanted.size === 0 || number <= this.confirmed;
  }

  // What Redis does not know yet: one batch after the other, because the client cannot take back what is on its way.
  // Calls `done` when Redis has answered.
  sendTo(link, done) {
    if (this.isBusy || (this.link === link && this.sent === this.asked)) return;
    const isNew = this.link !== link;
    const batch = isNew ? [...this.wanted.values()].map((entry) => ({ ...entry, wanted: true })) : [...this.changes.values()];
    this.link = link;
    this.changes.clear();
    this.isBusy = true;
    const number = this.sent = this.asked;
    Promise.all(batch.map((change) => this.ask(link, change))).then(() => {
      if (this.link !== link) return;
      this.isBusy = false;
      this.confirmed = number;
      done();
    });
  }

  // A refusal counts as an answer: what Redis does not allow shall not hold up the rest.
  ask(link, { channel, isPattern, take, wanted }) {
    return link.subscribe(channel, isPattern, take, wanted).then((reason) => {
      if (this.link !== link) return;
      this.last = null;
      if (reason !== null) this.refused(channel, reason);
    });
  }

  // Whoever handles it looks for patterns, too, and Redis sends a message once for the channel's name, then once for each
  // pattern: only the first of these is handed on. It is another message when the same pattern comes again.
  takeMatched(pattern, name, message) {
    const { last } = this;
    if (last && !last.patterns.has(pattern) && last.name.equals(name) && last.message.equals(message)) {
      last.patterns.add(pattern);
    } else {
      this.handOn(name, message, [pattern]);
    }
  }

  handOn(name, message, patterns) {
    this.last = { name, message, patterns: new Set(patterns) };
    this.deliver(name, message);
  }
}

module.exports = { Subscriptions };
