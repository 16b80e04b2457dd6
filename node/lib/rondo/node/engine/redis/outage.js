// The times when Redis is away: says so once, when it begins and when it is over, and knows how long to pause before the
// next attempt. The lines are those of the server on MRI.
// SPDX-License-Identifier: MIT

"use strict";

const log = require("../log");

// Milliseconds between attempts, and how much of that is chance, so that not all processes come at once.
const SHORTEST = 100;
const LONGEST = 5000;
const JITTER = 0.5;
// A connection that held for so long was none that breaks at once, again and again.
const STEADY = 5000;

class Outage {
  // @param name of Redis, without a password
  constructor(name) {
    this.name = name;
    this.reason = null;
    this.said = null;
    this.refusal = null;
    this.attempts = 0;
    this.since = performance.now();
    this.isHere = false;
    this.isFull = false;
    this.lost = 0;
  }

  // @param isAnswer Redis gives the reason itself: worth a line also when it was away before
  // Returns milliseconds until the next attempt.
  begin(reason, isAnswer) {
    const now = performance.now();
    if (this.isHere && now - this.since > STEADY) this.attempts = 0;
    if (this.isHere) this.since = now;
    if (this.reason === null || (isAnswer && reason !== this.said)) {
      this.said = reason;
      this.error(`${this.name} is not available: ${reason}; trying again`);
    }
    this.reason = reason;
    this.isHere = false;
    const longest = Math.min(SHORTEST * 2 ** Math.min(this.attempts, 10), LONGEST);
    this.attempts += 1;
    return longest * (1 - Math.random() * JITTER);
  }

  over() {
    if (this.isHere) return;
    const seconds = ((performance.now() - this.since) / 1000).toFixed(1);
    log.info(this.reason === null ? `* ${this.name}` : `* ${this.name} is available again after ${seconds} s`);
    this.isHere = true;
    this.reason = null;
    this.since = performance.now();
  }

  // The queue is full: a line for each time.
  full(limits) {
    this.lost += 1;
    if (this.isFull) return;
    this.isFull = true;
    this.error(`${this.name}: the queue is full (${limits}); messages published now are lost`);
  }

  // The queue is empty.
  drained() {
    if (!this.isFull) return;
    this.error(`${this.name}: the queue is empty again; ${this.lost} messages or commands were lost`);
    this.isFull = false;
    this.lost = 0;
  }

  // Redis does not take something, or we do not: a line for each reason.
  refused(reason) {
    if (this.refusal === reason) return;
    this.refusal = reason;
    this.error(`${this.name}: ${reason}`);
  }

  error(line) {
    log.error(`! ${log.escape(line).replaceAll("\n", " ")}`);
  }
}

module.exports = { Outage };
