// What an engine of pub/sub is to know of subscriptions, and what it has been told. This is state, not a queue: of each
// channel the last word counts, so there is never more of it than channels. A call that raised is repeated until it
// succeeds or its word does not hold any more. An engine may answer with a Promise: then nothing is told until that ends.
// SPDX-License-Identifier: MIT

"use strict";

const log = require("./log");

// Milliseconds until calls that raised are repeated; doubled while some of them raise again.
const RETRY = 1000;
const RETRY_MAX = 60000;
// After this an engine is named that does not come back from a call.
const SLOW = 5000;
// Between two lines about errors of one engine.
const LINE_EVERY = 1000;

const UNSURE = "unsure";

class Notices {
  // @param engine an object of Ruby
  constructor(engine) {
    this.engine = engine;
    this.known = new Map(); // key → true, or UNSURE after a call that raised
    this.due = new Map(); // key → { channel, isPattern, wanted }
    this.failed = new Map(); // likewise; due again after `pause`
    this.pause = RETRY;
    this.calling = null;
    this.isScheduled = false;
    this.ended = false;
    this.unnamed = 0;
    this.namedAt = 0;
    this.waiting = []; // of flush
  }

  // The channel has subscribers now, or has none any more. The engine is told later, never inside of the caller.
  want(channel, isPattern, wanted) {
    const key = `${isPattern}:${channel}`;
    this.failed.delete(key);
    const state = this.calling?.key === key ? this.calling.wanted : this.known.get(key) ?? false;
    if (state === wanted) this.due.delete(key);
    else this.due.set(key, { key, channel, isPattern, wanted });
    this.schedule();
  }

  // The engine has forgotten everything.
  reset(interests) {
    this.known.clear();
    this.failed.clear();
    this.due.clear();
    // The call that is on its way may have come before that, or after.
    if (this.calling) {
      this.due.set(this.calling.key, { ...this.calling, wanted: false });
      this.calling.wanted = UNSURE;
    }
    for (const [channel, isPattern] of interests) {
      const key = `${isPattern}:${channel}`;
      this.due.set(key, { key, channel, isPattern, wanted: true });
    }
    this.schedule();
  }

  schedule() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    queueMicrotask(() => {
      this.isScheduled = false;
      this.notifyDue();
    });
  }

  // Tells the engine all that is due, up to a call that has not ended.
  notifyDue() {
    while (this.calling === null && !this.ended && this.due.size > 0) {
      const [key, notice] = this.due.entries().next().value;
      this.due.delete(key);
      this.notify(notice);
    }
    if (this.isQuiet()) this.waiting.splice(0).forEach((done) => done());
  }

  isQuiet() {
    return this.ended || (this.due.size === 0 && this.calling === null);
  }

  notify({ key, channel, isPattern, wanted }) {
    const told = wanted;
    this.calling = { key, channel, isPattern, wanted };
    let result;
    try {
      result = told ? this.engine.$subscribe(channel, isPattern) : this.engine.$unsubscribe(channel, isPattern);
    } catch (exception) {
      return this.failedWith(told, exception);
    }
    if (!(result instanceof Promise)) return this.succeeded();
    const slow = this.watch();
    return result.then(() => this.succeeded(), (exception) => this.failedWith(told, exception)).then(() => {
      slow.end();
      this.notifyDue();
    });
  }

  // A line for a call that does not come back, and one when it does.
  watch() {
    const began = Date.now();
    const name = className(this.engine);
    let isNamed = false;
    const timer = setTimeout(() => {
      isNamed = true;
      log.error(`! ${name} has not returned from a notice of a subscription for ${SLOW / 1000} s: ` +
                `${this.due.size} more notices wait`);
    }, SLOW).unref();
    return {
      end() {
        clearTimeout(timer);
        if (!isNamed) return;
        const seconds = ((Date.now() - began) / 1000).toFixed(1);
        log.info(`- ${name} returned after ${seconds} s and is notified of what has changed since`);
      },
    };
  }

  succeeded() {
    const { key, wanted } = this.calling;
    this.calling = null;
    if (wanted === false) this.known.delete(key);
    else this.known.set(key, wanted);
    if (this.failed.size === 0) this.pause = RETRY;
  }

  // The engine may have done it or not: a newer word is told either way, else this one again.
  failedWith(told, exception) {
    const { key, channel, isPattern } = this.calling;
    this.calling = null;
    this.known.set(key, UNSURE);
    if (!this.due.has(key) && !this.ended) this.tryAgain({ key, channel, isPattern, wanted: told });
    this.complain(told ? "subscribe" : "unsubscribe", exception);
  }

  tryAgain(notice) {
    if (this.failed.size === 0) {
      setTimeout(() => this.requeue(), this.pause).unref();
      this.pause = Math.min(this.pause * 2, RETRY_MAX);
    }
    this.failed.set(notice.key, notice);
  }

  requeue() {
    for (const [key, notice] of this.failed) this.due.set(key, notice);
    this.failed.clear();
    this.notifyDue();
  }

  complain(method, exception) {
    this.unnamed += 1;
    if (Date.now() - this.namedAt < LINE_EVERY) return;
    const more = this.unnamed === 1 ? "" : ` (${this.unnamed} errors)`;
    this.namedAt = Date.now();
    this.unnamed = 0;
    log.report(`! ${className(this.engine)}#${method}${more}`, exception);
  }

  // Calls `done` when the engine has been told everything, but for what it raised at.
  whenQuiet(done) {
    this.waiting.push(done);
    this.notifyDue();
  }

  // Nothing more is told.
  end() {
    this.ended = true;
    this.notifyDue();
  }
}

function className(engine) {
  return engine.$$class.$inspect();
}

module.exports = { Notices, className };
