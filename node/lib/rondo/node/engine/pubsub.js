// Engines of pub/sub in this process: which of them are told of subscriptions, and what they have to do before the
// process ends. Which one carries a message is decided in Ruby (opal/rondo/pubsub/engines.rb).
// SPDX-License-Identifier: MIT

"use strict";

const log = require("./log");
const ruby = require("./ruby");
const { Notices, className } = require("./notices");

// Milliseconds that engines have at the end to hear that there are no subscribers any more.
const FAREWELL = 1000;

class Engines {
  // @param bus that of this process
  constructor(bus) {
    this.bus = bus;
    this.channels = bus.channels;
    this.told = new Map(); // engine → Notices
    this.listeners = []; // functions that hear of each change
    this.master = null; // the way to an engine in the master
    this.closers = new Set(); // functions that get a callback
    this.leave = () => {};
    this.isHurried = false;
    this.channels.onChange = (name, isPattern, wanted) => this.change(name, isPattern, wanted);
  }

  // A channel has its first subscriber in this process, or has lost its last one.
  change(name, isPattern, wanted) {
    for (const notices of this.told.values()) notices.want(name, isPattern, wanted);
    for (const listener of this.listeners) listener(name, isPattern, wanted);
  }

  // From now on there is an engine in the master.
  useMaster(master) {
    this.master = master;
    this.listeners.push((...change) => master.change(...change));
  }

  isMasterUsed() {
    return this.master !== null;
  }

  publishByMaster(channel, data) {
    return this.master ? this.master.publish(channel, data) : this.bus.publish(channel, data, "cluster");
  }

  attach(engine) {
    if (this.told.has(engine)) return;
    this.told.set(engine, new Notices(engine));
    this.reset(engine);
  }

  isAttached(engine) {
    return this.told.has(engine);
  }

  detach(engine) {
    this.told.get(engine)?.end();
    this.told.delete(engine);
  }

  reset(engine) {
    this.told.get(engine)?.reset(this.channels.names());
  }

  // Who has subscribed before gets the message, also if that was in the same callback.
  hand(engine, channel, message) {
    this.told.get(engine)?.notifyDue();
    const failed = (exception) => log.report(`! ${className(engine)}#publish`, exception);
    try {
      const result = engine.$publish(channel, message);
      if (!(result instanceof Promise)) return result !== false && result !== ruby.nil && result !== undefined;
      result.catch(failed);
      return true;
    } catch (exception) {
      failed(exception);
      return false;
    }
  }

  // The process is about to end. What has to leave it leaves, or its time is over; then `done` is called.
  close(done) {
    if (this.isHurried) return done();
    this.leave = done;
    for (const [name, isPattern] of this.channels.names()) this.change(name, isPattern, false);
    const all = [...this.told.values()].map((notices) => new Promise((told) => notices.whenQuiet(told)));
    const farewell = new Promise((over) => setTimeout(over, FAREWELL));
    return Promise.race([Promise.all(all), farewell])
      .then(() => Promise.all([...this.closers].map((close) => new Promise(close))))
      .then(done);
  }

  // The process must end at once.
  hurry() {
    this.isHurried = true;
    this.leave();
  }
}

module.exports = { Engines };
