// Pub/sub through Redis, and ordinary commands beside it. What is called here only queues. Two connections, one that is
// subscribed and one for everything else, are made anew whenever one of them breaks. Whenever the subscribed one is new,
// all subscriptions go out and are confirmed before anything that was published leaves.
// SPDX-License-Identifier: MIT

"use strict";

const { isUtf8 } = require("node:buffer");
const address = require("./address");
const limits = require("../limits");
const { Link, load } = require("./link");
const { Outage } = require("./outage");
const { Outbox, sizeOf } = require("./outbox");
const { Subscriptions } = require("./subscriptions");

// Milliseconds that what is queued has at the end of the process.
const LAST_CHANCE = 2000;
// Commands and bytes under way at once; the rest waits in the queue.
const WINDOW = 1000;
const WINDOW_BYTES = 262144;
// Bytes of a message that a subscription of the longest pattern adds to it.
const RETURN_EXTRA = 1100;
const DEFAULTS = { ping: 10000, timeout: 5000, queue: 10000, queueBytes: 67108864, replyMax: 16777216 };

class RedisEngine {
  // @param url redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for TLS, unix:///PATH?db=DATABASE
  // @param options those of DEFAULTS, and `credentials` and `files` of TLS
  // @param deliver gets a channel and a message, a string or a Buffer
  // Throws AddressError.
  constructor(url, options, deliver) {
    load();
    this.terms = { ...DEFAULTS, ...options };
    this.address = { ...address.secure(address.parse(url), options.files ?? {}), ...options.credentials };
    this.name = `Redis at ${this.address.shown}`;
    this.handOver = deliver;
    this.outage = new Outage(this.name);
    this.outbox = new Outbox(this.terms.queue, this.terms.queueBytes, (entry) => this.lose(entry));
    this.subscriptions = new Subscriptions((channel, message) => this.deliver(channel, message),
                                           (channel, reason) => this.refuse(channel, reason));
    this.commands = null;
    this.listener = null;
    this.pause = null; // the timer until the next attempt
    this.isScheduled = false;
    this.isClosed = false; // nothing more is taken
    this.isEnded = false; // there are no connections any more
    this.waiting = new Set(); // of whenChanged
  }

  subscribe(channel, isPattern) {
    if (this.isClosed) return;
    this.subscriptions.add(channel, isPattern);
    this.wake();
  }

  unsubscribe(channel, isPattern) {
    if (this.isClosed) return;
    this.subscriptions.remove(channel, isPattern);
    this.wake();
  }

  // @param message a string or a Buffer
  publish(channel, message) {
    return this.push(["PUBLISH", channel, message], true, null);
  }

  // @param words strings or Buffers
  // @param answer gets the reply, or an Error
  command(words, answer) {
    return this.push(words, false, answer);
  }

  push(words, isPublish, answer) {
    const size = sizeOf(words);
    if (this.isClosed || (isPublish && size + RETURN_EXTRA > this.terms.replyMax)) return false;
    const entry = { words, size, number: this.subscriptions.asked, isPublish, answer };
    if (!this.outbox.push(entry)) {
      this.outage.full(this.outbox.limits());
      return false;
    }
    this.wake();
    return true;
  }

  // Work is done once for all that is asked in one go.
  wake() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.turn();
    });
  }

  turn() {
    if (this.pause !== null || this.isEnded) return;
    this.commands ??= this.open();
    if (this.subscriptions.wanted.size > 0) this.listener ??= this.open();
    if (this.listener?.isReady) this.subscriptions.sendTo(this.listener, () => this.turn());
    if (this.commands?.isReady) this.feed(this.commands);
    if (!this.commands?.isReady || !(this.listener ? this.listener.isReady : this.subscriptions.wanted.size === 0)) return;
    this.outage.over();
    this.changed();
  }

  // A link that breaks while it is made leaves null, and a pause.
  open() {
    const link = new Link(this.address, this.terms, () => this.turn(), (reason, isAnswer) => this.giveUp(reason, isAnswer));
    return link.isClosed ? null : link;
  }

  feed(link) {
    const allows = (number) => this.subscriptions.reached(number);
    while (link.unanswered.size < WINDOW && link.sentBytes < WINDOW_BYTES) {
      const entry = this.outbox.shift(allows);
      if (entry === null) break;
      link.send(entry, (...reply) => this.answered(...reply));
    }
  }

  answered(entry, reply) {
    this.outbox.done(entry);
    if (entry.isPublish && reply instanceof Error) this.outage.refused(reply.message);
    entry.answer?.(reply);
    if (this.outbox.count > 0) return this.wake();
    this.outage.drained();
    return this.changed();
  }

  lose(entry) {
    entry.answer?.(new Error(`${this.name} lost the connection before it replied`));
  }

  // One connection without the other is of no use.
  giveUp(reason, isAnswer) {
    if (this.isEnded) return;
    const unanswered = this.commands ? [...this.commands.unanswered] : [];
    this.closeLinks();
    this.subscriptions.forgetLink();
    this.outbox.requeue(unanswered);
    const milliseconds = this.outage.begin(reason, isAnswer);
    clearTimeout(this.pause);
    this.pause = setTimeout(() => {
      this.pause = null;
      this.turn();
    }, milliseconds).unref();
    this.changed();
  }

  closeLinks() {
    this.commands?.close();
    this.listener?.close();
    this.commands = this.listener = null;
  }

  // ---- what comes ----

  deliver(name, message) {
    const problem = this.problemOf(name, message);
    if (problem) return this.outage.refused(`a message from Redis could not be delivered: ${problem}`);
    try {
      return this.handOver(name.toString(), isUtf8(message) ? message.toString() : Buffer.from(message));
    } catch (error) {
      return this.outage.refused(`a message from Redis could not be delivered: ${error.message}`);
    }
  }

  problemOf(name, message) {
    if (name.length < 1 || name.length > 1024) return "the name of a channel must have 1 to 1024 bytes";
    if (!isUtf8(name)) return "the name of its channel is not UTF-8";
    if (message.length <= limits.maxPublishBytes) return null;
    return `it has ${message.length} bytes, more than max_publish_bytes (${limits.maxPublishBytes})`;
  }

  refuse(channel, reason) {
    this.outage.refused(`cannot subscribe to ${JSON.stringify(channel)}: ${reason}`);
  }

  // ---- the end, and waiting ----

  changed() {
    for (const look of [...this.waiting]) look();
  }

  // Calls `done` when `holds` is true, or after that time.
  whenChanged(milliseconds, holds, done) {
    const timer = setTimeout(() => end(), milliseconds);
    const end = () => {
      clearTimeout(timer);
      this.waiting.delete(look);
      done();
    };
    const look = () => holds() && end();
    this.waiting.add(look);
    look();
  }

  // Calls `done` with the number of messages and commands that have no answer by then.
  flush(milliseconds, done) {
    this.whenChanged(milliseconds, () => this.outbox.count === 0, () => done(this.outbox.count));
  }

  // Nothing can be published any more. What is lost by that is a line in the log.
  close(milliseconds, done) {
    this.isClosed = true;
    this.flush(milliseconds ?? LAST_CHANCE, (lost) => {
      if (lost > 0 && !this.isEnded) this.outage.error(`${this.name}: ${lost} messages were not sent`);
      this.isEnded = true;
      clearTimeout(this.pause);
      this.closeLinks();
      done();
    });
  }
}

module.exports = { RedisEngine };
