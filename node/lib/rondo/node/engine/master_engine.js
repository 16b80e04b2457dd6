// An engine of pub/sub for a whole cluster, in the master: it is told of the first and the last subscriber in all workers,
// and what it brings goes to all of them. So there are two connections to Redis, however many workers there are.
// SPDX-License-Identifier: MIT

"use strict";

// In the master.
class MasterEngine {
  // @param hub that of the workers
  // @param make gets a function that delivers a message, and returns the engine
  constructor(hub, make) {
    this.hub = hub;
    this.subscribers = new Map(); // key → workers
    this.isHurried = false;
    this.leave = () => {};
    this.engine = make((channel, data) => hub.relay({ channel, data, isKept: true }, null));
    this.engine.wake();
    hub.engine = this;
  }

  // From a worker. What one has said that has ended meanwhile does not count.
  take({ interests, channel, data }, worker) {
    if (interests && !this.hub.channels.has(worker)) return undefined;
    if (!interests) return this.engine.publish(channel, typeof data === "string" ? data : Buffer.from(data));
    return interests.forEach((interest) => this.change(worker, ...interest));
  }

  change(worker, name, isPattern, wanted) {
    const key = `${isPattern}:${name}`;
    const workers = this.subscribers.get(key) ?? new Set();
    if (wanted) {
      if (workers.size === 0) this.engine.subscribe(name, isPattern);
      this.subscribers.set(key, workers.add(worker));
    } else if (workers.delete(worker) && workers.size === 0) {
      this.subscribers.delete(key);
      this.engine.unsubscribe(name, isPattern);
    }
  }

  // The worker has ended.
  forget(worker) {
    for (const [key, workers] of this.subscribers) {
      if (workers.has(worker)) this.change(worker, key.slice(key.indexOf(":") + 1), key.startsWith("true:"), false);
    }
  }

  // What is queued gets a last chance, unless the process must end at once.
  close(done) {
    if (this.isHurried) return done();
    this.leave = done;
    return this.engine.close(null, done);
  }

  hurry() {
    this.isHurried = true;
    this.leave();
  }
}

// Milliseconds until the master is told again, when the way there was full.
const AGAIN = 100;

// In a worker: the way there. A message goes after the subscriptions that were made before it.
class MasterLink {
  // @param link that of the bus
  constructor(link) {
    this.link = link;
    this.changes = new Map(); // key → [name, isPattern, wanted], what the master does not know
    this.isScheduled = false;
  }

  // A second word takes back the first.
  change(name, isPattern, wanted) {
    const key = `${isPattern}:${name}`;
    if (!this.changes.delete(key)) this.changes.set(key, [name, isPattern, wanted]);
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => this.tellSoon());
  }

  tellSoon() {
    this.isScheduled = !this.tell();
    if (this.isScheduled) setTimeout(() => this.tellSoon(), AGAIN).unref();
  }

  // Returns whether the master has been told.
  tell() {
    if (this.changes.size > 0 && !this.link.send({ interests: [...this.changes.values()] })) return false;
    this.changes.clear();
    return true;
  }

  publish(channel, data) {
    return this.tell() && this.link.send({ isForEngine: true, channel, data });
  }
}

module.exports = { MasterEngine, MasterLink };
