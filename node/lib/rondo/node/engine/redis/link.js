// One connection to Redis, by the client of npm. It is opened and greeted within a deadline; then it is pinged when it is
// idle, and it counts as lost when Redis owes an answer and says nothing. It never comes back by itself: engine.js makes
// another one.
// SPDX-License-Identifier: MIT

"use strict";

const path = require("node:path");
const { getSystemErrorMap } = require("node:util");
const { AddressError } = require("./address");
const { Replies } = require("./replies");

// The build has it beside the server.
const CLIENT = "redis.js";
// How often the time is looked at while nothing happens.
const LOOKS = 4;
const METHODS = new Map([["true:false", "subscribe"], ["false:false", "unsubscribe"],
                         ["true:true", "pSubscribe"], ["false:true", "pUnsubscribe"]]);
let library = null;

// The words of the system, as Ruby writes them.
function systemText(error) {
  const text = getSystemErrorMap().get(error.errno)?.[1];
  return text && text[0].toUpperCase() + text.slice(1);
}

// One line. A Redis that does not know AUTH repeats the password, so that words are left out.
function reasonOf(error) {
  const cause = error.errors?.[0] ?? error;
  if (cause instanceof library.ErrorReply) return cause.message.split(/,? with args/)[0];
  if (cause.constructor.name === "SocketClosedUnexpectedlyError") return "Redis closed the connection";
  if (cause.code?.startsWith("ERR_TLS") || /certificate/i.test(cause.message)) {
    return `certificate verify failed: ${cause.message}`;
  }
  return systemText(cause) || cause.message.split("\n")[0];
}

// Throws AddressError when the build has no client.
function load() {
  try {
    library ??= require(path.join(__dirname, CLIENT));
  } catch (error) {
    throw new AddressError(`cannot load ${CLIENT}: ${error.message.split("\n")[0]}`);
  }
}

class Link {
  // @param address of address.js
  // @param terms { timeout, ping, replyMax }
  // @param onReady called once
  // @param onBroken called once, with the reason and whether Redis itself has said it
  constructor(address, terms, onReady, onBroken) {
    this.terms = terms;
    this.onBroken = onBroken;
    this.isReady = false;
    this.isClosed = false;
    this.unanswered = new Set(); // entries, in their order
    this.sentBytes = 0;
    this.owed = 0; // answers
    this.heardAt = this.openedAt = this.lookedAt = performance.now();
    this.interval = Math.min(terms.timeout, terms.ping) / LOOKS;
    this.cutter = new AbortController(); // the client cannot end a connection that is not open yet
    this.client = library.createClient(optionsOf(address, terms, this.cutter.signal));
    this.client.on("error", (error) => this.breakOff(error));
    this.limitReplies();
    this.timer = setInterval(() => this.look(), this.interval).unref();
    this.open(onReady);
  }

  // Only the answer to PING shows that the server works: a stopped process still accepts.
  async open(onReady) {
    try {
      await this.client.connect();
      await this.client.sendCommand(["PING"]);
      if (this.isClosed) return undefined;
      this.isReady = true;
      return onReady();
    } catch (error) {
      return this.breakOff(error);
    }
  }

  // The client's own decoder has no limits.
  limitReplies() {
    const queue = this.client._getQueue();
    const replies = new Replies(this.terms.replyMax, queue.decoder, library.ErrorReply);
    const write = replies.write.bind(replies);
    replies.write = (chunk) => {
      this.heardAt = performance.now();
      write(chunk);
    };
    queue.decoder = replies;
  }

  ask() {
    if (this.owed === 0) this.heardAt = performance.now();
    this.owed += 1;
  }

  // @param entry of the outbox
  // @param answer gets the entry, and a reply or an error
  send(entry, answer) {
    this.unanswered.add(entry);
    this.sentBytes += entry.size;
    this.ask();
    const settle = (reply) => {
      if (this.isClosed) return;
      this.owed -= 1;
      this.unanswered.delete(entry);
      this.sentBytes -= entry.size;
      answer(entry, reply);
    };
    this.client.sendCommand(entry.words).then(settle, (error) => this.orBreakOff(error, settle));
  }

  // Ends with null, or with the reason for which Redis refuses it.
  subscribe(channel, isPattern, take, wanted) {
    const method = METHODS.get(`${wanted}:${isPattern}`);
    this.ask();
    return new Promise((done) => {
      const settle = (error) => {
        if (this.isClosed) return;
        this.owed -= 1;
        done(error ? reasonOf(error) : null);
      };
      this.client[method](channel, take, true).then(() => settle(null), (error) => this.orBreakOff(error, settle));
    });
  }

  orBreakOff(error, settle) {
    if (error instanceof library.ErrorReply) settle(error);
    else this.breakOff(error);
  }

  // A process that was busy has not read what came meanwhile: that time is no silence of Redis.
  look() {
    const now = performance.now();
    const busy = Math.max(now - this.lookedAt - this.interval, 0);
    this.lookedAt = now;
    this.heardAt = Math.min(this.heardAt + busy, now);
    this.openedAt = Math.min(this.openedAt + busy, now);
    const silent = now - (this.isReady ? this.heardAt : this.openedAt);
    if (!this.isReady || this.owed > 0) {
      if (silent >= this.terms.timeout) this.breakOff(new Error(`no answer within ${this.terms.timeout / 1000} s`));
    } else if (silent >= this.terms.ping) {
      this.ask();
      this.client.sendCommand(["PING"]).then(() => { this.owed -= 1; }, (error) => this.breakOff(error));
    }
  }

  breakOff(error) {
    if (this.isClosed) return;
    this.close();
    this.onBroken(reasonOf(error), error instanceof library.ErrorReply);
  }

  close() {
    this.isClosed = true;
    clearInterval(this.timer);
    this.client.destroy();
    this.cutter.abort();
  }
}

function optionsOf(address, terms, signal) {
  const { socket, username, password, database } = address;
  return {
    username, password, database, RESP: 2, maintNotifications: "disabled", disableClientInfo: true,
    disableOfflineQueue: true, commandOptions: { timeout: 0 },
    // look() has the limit: the client would count the time in which this process was busy.
    socket: { ...socket, signal, connectTimeout: 0, reconnectStrategy: false },
  };
}

module.exports = { Link, load };
