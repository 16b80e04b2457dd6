// Messages between the workers: each worker has a link to the master, and the master passes on what one of them
// publishes. What a process does not take is limited by hub_queue_bytes; above it the newest messages are dropped.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");
const log = require("./log");
const { History } = require("./history");

// Counts the bytes that wait for the other side.
class Channel {
  // @param peer a process or a worker with `send`
  constructor(peer) {
    this.peer = peer;
    this.waiting = 0;
    this.dropped = 0;
    this.complained = 0; // when the log said so
  }

  // Returns whether there was room.
  send(message) {
    const size = message.data === undefined ? 0 : message.data.length;
    if (this.waiting + size > limits.hubQueueBytes) return false;
    this.waiting += size;
    this.peer.send({ hub: message }, () => { this.waiting -= size; });
    return true;
  }
}

// In a worker.
class Link {
  constructor() {
    this.channel = new Channel({ send: (message, done) => process.connected && process.send(message, done) });
  }

  listen(take) {
    process.on("message", (message) => {
      if (message.hub) take(message.hub);
    });
  }

  send(message) {
    return this.channel.send(message);
  }
}

// In the master.
class Hub {
  constructor() {
    this.history = new History();
    this.channels = new Map();
    this.engine = null; // master_engine.js
  }

  // A worker that takes part from now on.
  add(worker) {
    const channel = new Channel({ send: (message, done) => worker.isConnected() && worker.send(message, done) });
    this.channels.set(worker.id, channel);
    worker.on("message", (message) => {
      if (message.hub) this.take(message.hub, worker.id);
    });
  }

  remove(worker) {
    this.channels.delete(worker.id);
    this.engine?.forget(worker.id);
  }

  take(message, from) {
    if (message.rule) {
      this.history.setRule(...message.rule);
    } else if (message.replay !== undefined) {
      const { replay, name, isPattern, since } = message;
      this.channels.get(from)?.send({ replay, messages: this.history.since(name, isPattern, since) });
    } else if (message.interests || message.isForEngine) {
      this.engine?.take(message, from);
    } else {
      this.relay(message, from);
    }
  }

  // A message that the history keeps goes back to its publisher, too.
  relay({ channel, data, isKept }, from) {
    const id = isKept ? this.history.add(channel, data) : 0;
    for (const [worker, way] of this.channels) {
      if (worker === from && !isKept) continue;
      if (!way.send({ channel, data, id })) this.complain(worker, way);
    }
  }

  // At most one line in a second.
  complain(worker, way) {
    way.dropped += 1;
    if (Date.now() - way.complained < 1000) return;
    way.complained = Date.now();
    log.error(`Worker ${worker} does not read its messages: ${way.dropped} are dropped so far (hub_queue_bytes)`);
  }
}

module.exports = { Hub, Link };
