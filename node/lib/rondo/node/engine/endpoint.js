// A connection that stays open after its request: the part that WebSockets and event streams share. It calls the
// callbacks of its handler one after the other, and it has the subscriptions.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");
const log = require("./log");
const ruby = require("./ruby");
const stopping = require("./stopping");
const { cachedAddress } = require("./env");

// Keys that were valid only until the answer.
const GONE_KEYS = ["rack.response_finished", "rack.early_hints", "HTTP_SEC_WEBSOCKET_KEY"];
let bus = null;

class Endpoint {
  // @param protocol "websocket" or "sse"
  constructor(protocol, env, handler, socket) {
    this.protocol = protocol;
    this.env = env;
    this.handler = handler;
    this.socket = socket;
    this.timeout = limits.pingInterval;
    this.subscriptions = new Map();
    this.subscriptionBytes = 0;
    this.jobs = [];
    this.waitingBytes = 0; // of messages that wait for a callback (messages.js)
    this.busy = false;
    this.closeCode = 0;
    this.closeReason = null;
    this.closed = false;
    this.client = ruby.constant("Rondo", "Client").$allocate();
    this.client.endpoint = this;
    for (const key of GONE_KEYS) env.delete(key);
    this.client.env = env;
    this.drains = false;
    stopping.endpoints.add(this);
  }

  opened() {
    this.drains = ruby.has(this.handler, "on_drained");
    this.call("on_open");
  }

  // One more callback, after those that wait.
  call(name, ...args) {
    this.enqueue(() => this.invoke(this.handler, name, args));
  }

  invoke(handler, name, args) {
    if (!ruby.has(handler, name)) return undefined;
    return this.guard(handler, name, () => handler[`$${name}`](this.client, ...args));
  }

  // An exception closes only this connection.
  guard(handler, name, run) {
    const failed = (exception) => {
      log.reportCallback(handler, name, exception);
      this.close(1011, "");
    };
    try {
      const result = run();
      return result instanceof Promise ? result.catch(failed) : undefined;
    } catch (exception) {
      return failed(exception);
    }
  }

  enqueue(job) {
    this.jobs.push(job);
    if (!this.busy) this.runJobs();
  }

  runJobs() {
    this.busy = true;
    while (this.jobs.length > 0) {
      const waiting = this.runJob(this.jobs.shift());
      if (waiting instanceof Promise) {
        waiting.catch((exception) => this.broken(exception)).then(() => this.runJobs());
        return;
      }
    }
    this.busy = false;
    this.caughtUp();
  }

  runJob(job) {
    try {
      return job();
    } catch (exception) {
      return this.broken(exception);
    }
  }

  // Not even the report of an exception has worked. The callbacks that wait are called nevertheless.
  broken(exception) {
    log.report("a callback", exception);
    this.abort(1011);
  }

  // Bytes of a message that has not come completely (messages.js).
  incomplete() {
    return 0;
  }

  // No callback waits any more.
  caughtUp() {}

  // A block of a subscription is a callback of the connection, too. A client whose callbacks wait for too long is closed.
  callBlock(block, channel, message, id) {
    if (this.jobs.length >= limits.maxWaitingBlocks) return this.abort(1013);
    const run = () => block.$call(channel, message, id);
    return this.enqueue(() => (this.closed ? undefined : this.guard(this.handler, "subscribe", run)));
  }

  drained() {
    if (this.drains && !this.closed && this.pending() === 0) this.call("on_drained");
  }

  // A slow client is closed; what the server itself publishes is no reason to keep it.
  hasRoom() {
    if (this.pending() < limits.maxPendingBytes) return true;
    this.abort(1013);
    return false;
  }

  changeHandler(handler) {
    const before = this.handler;
    if (handler === ruby.nil) return this.close(1000, "");
    this.jobs.push(() => {
      this.invoke(before, "on_close", []);
      this.handler = handler;
      this.opened();
    });
    if (!this.busy) this.runJobs();
    return handler;
  }

  // The first cause of the end is the one that counts.
  noteEnd(code, reason) {
    this.closeCode ||= code;
    this.closeReason ??= reason;
  }

  // `look` comes each time that this has gone by; never for 0.
  setTimeout(milliseconds) {
    this.timeout = milliseconds;
    clearInterval(this.looking);
    if (milliseconds > 0) this.looking = setInterval(() => this.look(), milliseconds).unref();
  }

  // The connection has ended, for any cause.
  ended(code, reason) {
    clearInterval(this.looking);
    if (this.closed) return;
    this.closed = true;
    this.noteEnd(code, reason);
    stopping.endpoints.delete(this);
    bus.forget(this);
    this.call("on_close");
  }

  shutdown() {
    this.call("on_shutdown");
    this.enqueue(() => this.close(1001, ""));
  }

  peer() {
    const address = cachedAddress(this.socket);
    return address === "" ? ruby.nil : [address, this.socket.remotePort];
  }

  alpn() {
    return this.socket.alpnProtocol || (this.socket.encrypted ? "http/1.1" : null);
  }

  static attach(theBus) {
    bus = theBus;
  }
}

module.exports = { Endpoint };
