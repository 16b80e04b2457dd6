// Who has subscribed to what in this process. A name that is published to again is not matched again.
// SPDX-License-Identifier: MIT

"use strict";

const { compile } = require("./patterns");

const MOST_NAMES = 4096;

class Channels {
  constructor() {
    this.exact = new Map(); // name → Set of subscriptions
    this.patterns = new Map(); // pattern → { matches, subscribers }
    this.matched = new Map(); // name → the patterns that match it
    this.onChange = () => {}; // for the first and the last subscriber of a name
  }

  add(name, isPattern, subscription) {
    if (!isPattern) {
      const subscribers = setOf(this.exact, name, () => new Set()).add(subscription);
      if (subscribers.size === 1) this.onChange(name, false, true);
      return;
    }
    const entry = setOf(this.patterns, name, () => {
      this.matched.clear();
      return { matches: compile(name), subscribers: new Set() };
    });
    if (entry.subscribers.add(subscription).size === 1) this.onChange(name, true, true);
  }

  remove(name, isPattern, subscription) {
    const subscribers = isPattern ? this.patterns.get(name)?.subscribers : this.exact.get(name);
    if (!subscribers?.delete(subscription)) return false;
    if (subscribers.size === 0) {
      (isPattern ? this.patterns : this.exact).delete(name);
      if (isPattern) this.matched.clear();
      this.onChange(name, isPattern, false);
    }
    return true;
  }

  // Names and patterns with subscribers, as pairs of a name and whether it is a pattern.
  names() {
    const exact = [...this.exact.keys()].map((name) => [name, false]);
    return exact.concat([...this.patterns.keys()].map((name) => [name, true]));
  }

  // Calls `visit` with each subscription that a message on this channel reaches.
  each(name, visit) {
    this.exact.get(name)?.forEach(visit);
    if (this.patterns.size === 0) return;
    for (const entry of this.patternsOf(name)) entry.subscribers.forEach(visit);
  }

  patternsOf(name) {
    let found = this.matched.get(name);
    if (found === undefined) {
      found = [...this.patterns.values()].filter((entry) => entry.matches(name));
      if (this.matched.size >= MOST_NAMES) this.matched.clear();
      this.matched.set(name, found);
    }
    return found;
  }
}

function setOf(map, key, make) {
  let found = map.get(key);
  if (found === undefined) {
    found = make();
    map.set(key, found);
  }
  return found;
}

module.exports = { Channels };
