// Published messages, from the application to the subscribers of all workers. Without workers the history is here; with
// workers it is in the master, and a message that the history keeps comes back from there, with its id.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");
const log = require("./log");
const text = require("./text");
const { Channels } = require("./channels");
const { Engines } = require("./pubsub");
const { History } = require("./history");
const ruby = require("./ruby");

const SUBSCRIPTION_BYTES = 256; // what each of them takes besides its name

// What subscribers get: the same object for all of them, so that its bytes are made once.
class Message {
  constructor(channel, data, id) {
    this.channel = channel;
    this.id = id;
    this.isBinary = typeof data !== "string";
    this.data = data;
  }

  get text() {
    return this.data;
  }

  get bytes() {
    this.wire ??= this.isBinary ? this.data : Buffer.from(this.data, "utf8");
    return this.wire;
  }

  // As Ruby gets it.
  get string() {
    return this.isBinary ? text.fromBytes(this.data) : this.data;
  }
}

class Bus {
  // @param link the way to the master (hub.js), or null without workers
  constructor(link) {
    this.link = link;
    this.channels = new Channels();
    this.engines = new Engines(this);
    this.history = new History();
    this.blocks = new Map();
    this.waiting = new Map();
    this.lastRequest = 0;
    this.subscriptionBytes = 0; // of all clients
    this.complained = 0; // when the log said that they have too many
    if (link) link.listen((message) => this.receive(message));
  }

  // A rule of the history. Workers need the rules, too: a message that is kept goes to the master first.
  remember(name, isPattern, size, ttl) {
    this.history.setRule(name, isPattern, size, ttl);
    this.link?.send({ rule: [name, isPattern, size, ttl] });
  }

  // @param scope "cluster", "engine", "process" or "siblings"
  publish(channel, data, scope) {
    if (scope === "engine") return this.engines.publishByMaster(channel, data);
    if (scope === "process" || !this.link) return scope === "siblings" ? true : this.publishHere(channel, data, scope);
    const isKept = scope === "cluster" && this.history.rules.size > 0 && this.history.ruleOf(channel) !== null;
    if (!this.link.send({ channel, data, isKept })) return false;
    if (scope === "cluster" && !isKept) this.deliver(channel, data, 0);
    return true;
  }

  publishHere(channel, data, scope) {
    const id = scope === "process" && this.link ? 0 : this.history.add(channel, data);
    this.deliver(channel, data, id);
    return true;
  }

  deliver(channel, data, id) {
    let message = null;
    this.channels.each(channel, (subscription) => {
      message ??= new Message(channel, data, id);
      subscription.take(message);
    });
  }

  // From the master.
  receive(message) {
    if (message.replay !== undefined) {
      const take = this.waiting.get(message.replay);
      this.waiting.delete(message.replay);
      take?.(message.messages);
    } else {
      this.deliver(message.channel, message.data, message.id);
    }
  }

  subscribe(endpoint, name, isPattern, kind, since, block) {
    if (!endpoint.isOpen()) return false;
    const key = `${isPattern}:${name}`;
    const before = endpoint.subscriptions.get(key);
    if (!before && !this.hasRoom(endpoint, name)) return false;
    if (before) this.drop(endpoint, key, before);
    const take = block === null
      ? (message) => endpoint.deliver(message, kind)
      : (message) => endpoint.callBlock(block, message.channel, message.string, message.id || ruby.nil);
    const subscription = this.open(name, isPattern, since ?? lastSeen(endpoint), take);
    endpoint.subscriptions.set(key, subscription);
    endpoint.subscriptionBytes += name.length;
    this.subscriptionBytes += name.length + SUBSCRIPTION_BYTES;
    return true;
  }

  hasRoom(endpoint, name) {
    const fits = endpoint.subscriptions.size < limits.maxSubscriptions &&
      endpoint.subscriptionBytes + name.length <= limits.maxSubscriptionBytes;
    if (!fits) log.error("a client has max_subscriptions or max_subscription_bytes: one more is refused");
    return fits && this.hasRoomForAll(name);
  }

  // The log says so once in a second.
  hasRoomForAll(name) {
    if (this.subscriptionBytes + name.length + SUBSCRIPTION_BYTES <= limits.totalSubscriptionBytes) return true;
    if (Date.now() - this.complained >= 1000) {
      this.complained = Date.now();
      log.error("all clients together have total_subscription_bytes: more subscriptions are refused");
    }
    return false;
  }

  // Messages of the past come first; what the history keeps and is published meanwhile is in the replay.
  open(name, isPattern, since, take) {
    const subscription = { name, isPattern, isOver: false, take };
    if (since !== null) this.replay(subscription, since);
    this.channels.add(name, isPattern, subscription);
    return subscription;
  }

  replay(subscription, since) {
    const { name, isPattern, take } = subscription;
    if (!this.link) {
      const kept = this.history.since(name, isPattern, since);
      for (const { channel, data, id } of kept) take(new Message(channel, data, id));
      return;
    }
    const later = [];
    subscription.take = (message) => later.push(message);
    const request = (this.lastRequest += 1);
    this.waiting.set(request, (messages) => {
      if (subscription.isOver) return; // meanwhile
      const lastId = messages.length > 0 ? messages.at(-1).id : 0;
      subscription.take = take;
      for (const { channel, data, id } of messages) take(new Message(channel, data, id));
      later.filter((message) => message.id === 0 || message.id > lastId).forEach(take);
    });
    if (!this.link.send({ replay: request, name, isPattern, since })) this.receive({ replay: request, messages: [] });
  }

  unsubscribe(endpoint, name, isPattern) {
    const key = `${isPattern}:${name}`;
    const subscription = endpoint.subscriptions.get(key);
    if (!subscription) return false;
    this.drop(endpoint, key, subscription);
    return true;
  }

  drop(endpoint, key, subscription) {
    endpoint.subscriptions.delete(key);
    endpoint.subscriptionBytes -= subscription.name.length;
    this.subscriptionBytes -= subscription.name.length + SUBSCRIPTION_BYTES;
    this.close(subscription);
  }

  // Nothing more is delivered, also of a replay that is still to come.
  close(subscription) {
    subscription.isOver = true;
    return this.channels.remove(subscription.name, subscription.isPattern, subscription);
  }

  // The connection has ended.
  forget(endpoint) {
    for (const [key, subscription] of endpoint.subscriptions) this.drop(endpoint, key, subscription);
  }

  // Without a client: the block gets one message after the other, never inside of the call that publishes.
  subscribeBlock(name, isPattern, since, block) {
    this.unsubscribeBlock(name, isPattern);
    const take = (message) => queueMicrotask(() => callBlock(block, message));
    this.blocks.set(`${isPattern}:${name}`, this.open(name, isPattern, since, take));
    return true;
  }

  unsubscribeBlock(name, isPattern) {
    const key = `${isPattern}:${name}`;
    const subscription = this.blocks.get(key);
    if (!subscription) return false;
    this.blocks.delete(key);
    return this.close(subscription);
  }
}

function callBlock(block, message) {
  try {
    block.$call(message.channel, message.string, message.id || ruby.nil);
  } catch (exception) {
    log.report(`Rondo.subscribe(${message.channel})`, exception);
  }
}

// A browser that comes back says which event it has seen last.
function lastSeen(endpoint) {
  if (endpoint.protocol !== "sse") return null;
  const id = endpoint.env.get("HTTP_LAST_EVENT_ID");
  return typeof id === "string" && /^\d{1,15}$/.test(id) ? { id: Number(id) } : null;
}

module.exports = { Bus };
