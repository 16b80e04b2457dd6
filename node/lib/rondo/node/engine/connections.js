// How many connections may be open (max_connections). For one more, room is made by closing one that was unused for a
// second: one that has never said anything first, then one that waits for its next request. Without such a one the new
// connection is closed.
// SPDX-License-Identifier: MIT

"use strict";

const fs = require("node:fs");
const log = require("./log");

const LOOK = 1000;
const RESERVED = 64; // descriptors for the application and its logs

// The limit of descriptors.
function descriptors() {
  try {
    return Number(/^Max open files +(\d+)/m.exec(fs.readFileSync("/proc/self/limits", "utf8"))?.[1] || Infinity);
  } catch {
    return Infinity;
  }
}

class Connections {
  // @param most connections; 0: as many as there are descriptors
  constructor(most) {
    this.most = most || Math.max(descriptors() - RESERVED, 1);
    this.sockets = new Map(); // socket → how many bytes it had read at the last look
    this.count = 0;
    this.unused = null; // those that were unused at the last look, as far as they have not been closed
    this.refused = 0;
  }

  watch(server) {
    server.on("connection", (socket) => {
      this.count += 1;
      socket.on("close", () => { this.count -= 1; });
      if (this.count > this.most && !this.makeRoom()) return this.refuse(socket);
      return this.add(socket);
    });
    server.on("secureConnection", (socket) => {
      if (socket._parent) this.sockets.delete(socket._parent); // it is the one below
      this.add(socket);
    });
    setInterval(() => this.look(), LOOK).unref();
  }

  add(socket) {
    this.sockets.set(socket, -1);
    socket.on("close", () => this.sockets.delete(socket));
  }

  makeRoom() {
    this.unused ??= this.findUnused();
    while (this.unused.length > 0) {
      const socket = this.unused.pop();
      if (this.isUnused(socket)) {
        socket.destroy();
        return true;
      }
    }
    return false;
  }

  // A connection that Node has given away is in use.
  isUnused(socket) {
    return socket.parser !== null && !socket._httpMessage && this.sockets.get(socket) === socket.bytesRead;
  }

  // The one that is closed first is the last one.
  findUnused() {
    const found = [...this.sockets.keys()].filter((socket) => this.isUnused(socket)).reverse();
    const isSilent = (socket) => socket.bytesRead === 0;
    return [...found.filter((socket) => !isSilent(socket)), ...found.filter(isSilent)];
  }

  refuse(socket) {
    this.refused += 1;
    socket.destroy();
  }

  // While there is room, nothing is asked of the connections but how much they have said.
  look() {
    this.unused = null;
    for (const socket of this.sockets.keys()) this.sockets.set(socket, socket.bytesRead);
    if (this.refused === 0) return;
    log.error(`${this.refused} connections were closed: ${this.most} are open and in use (max_connections)`);
    this.refused = 0;
  }
}

module.exports = { Connections };
