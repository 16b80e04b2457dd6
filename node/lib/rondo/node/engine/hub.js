// Messages between the workers: each worker has a link to the master, and the master passes on what one of them
// publishes. What a process does not take is limited by hub_queue_bytes; above it the newest messages are dropped.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");
const log = require("./log");
const { History } = require("./history");

const MESSAGE_BYTES = 128; // what each message takes besides its data

function sizeOf(message) {
  if (message.interests) return message.interests.reduce((sum, [name]) => sum + 2 * name.length, MESSAGE_BYTES);
  if (message.messages !== undefined) return message.messages.reduce((sum, one) => sum + sizeOf(one), MESSAGE_BYTES);
  return MESSAGE_BYTES + (message.data === undefined ? 0 : message.data.length);
}

// Counts the bytes that wait for the other side.
class Channel {
  // @param peer a process or a worker
  // @param isThere whether it is connected
  constructor(peer, isThere) {
    this.peer = peer;
    this.isThere = isThere;
    this.waiting = 0;
    this.dropped = 0;
    this.complained = 0; // when the log said so
  }

  // Returns whether there was room, and somebody to take it.
  send(message) {
    const size = sizeOf(message);
    if (this.waiting + size > limits.hubQueueBytes) return false;
    return this.pass(message, size);
  }

  // The newest messages of a replay for which there is room. It always leaves: its subscriber waits for it.
  sendReplay(replay, messages) {
    let size = MESSAGE_BYTES;
    let from = messages.length;
    while (from > 0 && this.waiting + size + sizeOf(messages[from - 1]) <= limits.hubQueueBytes) {
      from -= 1;
      size += sizeOf(messages[from]);
    }
    this.pass({ replay, messages: messages.slice(from) }, size);
    return from === 0;
  }

  pass(message, size) {
    if (!this.isThere()) return false;
    let counts = true;
    const taken = () => {
      if (counts) this.waiting -= size;
      counts = false;
    };
    this.waiting += size;
    try {
      this.peer.send({ hub: message }, taken);
      return true;
    } catch {
      taken();
      return false;
    }
  }
}

// In a worker.
class Link {
  constructor() {
    this.channel = new Channel(process, () => process.connected);
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
    const channel = new Channel(worker, () => worker.isConnected());
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
      const way = this.channels.get(from);
      if (way && !way.sendReplay(replay, this.history.since(name, isPattern, since))) this.complain(from, way);
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
