// Connections whose clients do not take what was sent to them. One that takes nothing for write_timeout_ms is closed.
// While all of them together hold more than total_output_bytes, so is the one that holds most. They are looked at once
// in a second: an answer that is taken soon costs nothing here.
// SPDX-License-Identifier: MIT

"use strict";

const log = require("./log");

const LOOK = 1000;

// How many bytes the kernel has taken. What is no socket of Node counts them itself.
function takenOf(socket) {
  if (socket.taken !== undefined) return socket.taken;
  const handle = socket._handle;
  return handle ? handle.bytesWritten - handle.writeQueueSize : 0;
}

class Clients {
  // @param limits with writeTimeout and totalOutputBytes
  // @param now gives milliseconds
  constructor(limits, now = () => performance.now()) {
    this.limits = limits;
    this.now = now;
    this.sockets = new Set();
    this.stalled = new Map();
    this.silent = new Set(); // of closeSilent
  }

  // With TLS a connection is two sockets: the second one knows what its client has not taken.
  watch(server) {
    for (const event of ["connection", "secureConnection"]) server.on(event, (socket) => this.add(socket));
    this.begin();
  }

  begin() {
    setInterval(() => this.look(), LOOK).unref();
  }

  add(socket) {
    this.sockets.add(socket);
    socket.on("close", () => this.forget(socket));
  }

  forget(socket) {
    this.sockets.delete(socket);
    this.stalled.delete(socket);
  }

  look() {
    let held = 0;
    for (const socket of this.sockets) {
      if (socket.writableLength === 0) {
        this.stalled.delete(socket);
      } else {
        held += socket.writableLength;
        this.judge(socket);
      }
    }
    if (held > this.limits.totalOutputBytes) this.relieve(held - this.limits.totalOutputBytes);
  }

  // Node's own closeAllConnections does not know those that it has given away.
  closeAll() {
    for (const socket of this.sockets) socket.destroy();
  }

  // Those that have not said anything, and had not at the last call: what has come is read in between.
  closeSilent() {
    const silent = [...this.sockets].filter((socket) => socket.bytesRead === 0);
    for (const socket of silent) {
      if (this.silent.has(socket)) socket.destroy();
    }
    this.silent = new Set(silent);
  }

  judge(socket) {
    const before = this.stalled.get(socket);
    const taken = takenOf(socket);
    const now = this.now();
    if (before === undefined || taken > before.taken) {
      this.stalled.set(socket, { taken, since: now });
    } else if (now - before.since >= this.limits.writeTimeout) {
      log.error(`${socket.remoteAddress}: the client took nothing for ${this.limits.writeTimeout} ms (write_timeout_ms)`);
      socket.destroy();
    }
  }

  relieve(excess) {
    const slow = [...this.stalled.keys()].sort((one, other) => other.writableLength - one.writableLength);
    let left = excess;
    let count = 0;
    while (left > 0 && count < slow.length) {
      left -= slow[count].writableLength;
      slow[count].destroy();
      count += 1;
    }
    log.error(`${count} connections were closed: clients do not take their answers (total_output_bytes)`);
  }
}

module.exports = { Clients };
