// Requests that come before the answer to an earlier one of their connection has left. Node parses all that it has
// read; here they wait for their turn, so the application has one of them at a time, and none behind the last answer of
// a connection. A client with many of them is not read.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");
const log = require("./log");

const BATCH = 64; // after so many requests of one connection others have their turn

let total = 0; // that wait, of all connections
let complained = 0; // when the log said that there are too many

class Turns {
  constructor(socket) {
    this.socket = socket;
    this.waiting = [];
    this.served = 0;
    this.isFull = false;
    this.refused = false;
    socket.on("resume", () => this.isFull && socket.pause()); // by Node, for its own reasons
    socket.on("close", () => this.drop());
  }

  // @param res the answer, whose turn Node knows; null for a connection that Node has given away
  add(res, run) {
    if (this.refused) return;
    if (total >= limits.totalPipelined) {
      this.refuse();
      return;
    }
    total += 1;
    this.waiting.push({ res, run });
    if (this.waiting.length === 1) this.watch();
    if (this.waiting.length > limits.maxPipelined) this.fill();
  }

  fill() {
    this.isFull = true;
    this.socket.pause();
  }

  // What waits is dropped, and the connection ends after the answer that is on its way.
  refuse() {
    if (Date.now() - complained >= 1000) {
      complained = Date.now();
      log.error(`${total} requests wait for earlier answers (total_pipelined_requests): more are dropped`);
    }
    this.drop();
    this.refused = true;
    this.fill();
    this.watch();
  }

  drop() {
    total -= this.waiting.length;
    this.waiting = [];
  }

  watch() {
    this.socket._httpMessage?.once("close", () => this.ended());
  }

  // An answer has left, or its client.
  ended() {
    this.served += 1;
    if (this.served % BATCH === 0) {
      setImmediate(() => this.next());
    } else {
      this.next();
    }
  }

  next() {
    const { socket } = this;
    if (this.refused) socket.destroySoon();
    if (!socket.writable) this.drop();
    if (this.waiting.length === 0) return;
    const { res, run } = this.waiting[0];
    if (socket._httpMessage && socket._httpMessage !== res) { // what Node answers by itself
      this.watch();
      return;
    }
    this.waiting.shift();
    total -= 1;
    this.relax();
    run();
    if (this.waiting.length > 0) this.watch();
  }

  relax() {
    if (!this.isFull || this.waiting.length > limits.maxPipelined / 2) return;
    this.isFull = false;
    this.socket.resume();
  }
}

function turnsOf(socket) {
  socket.rondoTurns ??= new Turns(socket);
  return socket.rondoTurns;
}

// For a request whose answer has to wait; `method` of `requests` takes it.
function wait(requests, method, req, res) {
  const { socket } = req;
  if (socket.writable) turnsOf(socket).add(res, () => requests[method](req, res));
}

// For a connection that Node has given away. Its listeners are gone, which answers before need.
function waitGivenAway(socket, run) {
  if (!socket._httpMessage) {
    run();
    return;
  }
  const drained = () => {
    const answer = socket._httpMessage;
    if (answer && !answer.finished) answer.emit("drain");
  };
  socket.on("error", () => socket.destroy());
  socket.on("drain", drained);
  turnsOf(socket).add(null, () => {
    socket.off("drain", drained);
    run();
  });
}

module.exports = { wait, waitGivenAway };
