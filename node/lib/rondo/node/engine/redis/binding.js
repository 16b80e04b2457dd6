// What Ruby's Rondo::PubSub::Redis (opal/rondo/pubsub/redis.rb) calls.
// SPDX-License-Identifier: MIT

"use strict";

const log = require("../log");
const ruby = require("../ruby");
const text = require("../text");
const { AddressError } = require("./address");
const { RedisEngine } = require("./engine");

const REDIS = ["Rondo", "PubSub", "Redis", "Error"];

// An engine whose messages go to the subscribers of this process.
function make(bus, url, options) {
  let engine;
  try {
    engine = new RedisEngine(url, options, (channel, message) => bus.publish(channel, message, "process"));
  } catch (error) {
    if (!(error instanceof AddressError)) throw error;
    throw ruby.error(["Rondo", "ConfigurationError"], error.message);
  }
  bus.engines.closers.add((done) => engine.close(null, done));
  return engine;
}

function publish(engine, channel, message) {
  return engine.publish(channel, text.toWire(message));
}

function command(engine, words, block) {
  const answer = block === ruby.nil ? null : (reply) => queueMicrotask(() => callBlock(engine, block, reply));
  return engine.command(words.map((word) => text.toWire(word)), answer);
}

function callBlock(engine, block, reply) {
  try {
    block.$call(toRuby(reply));
  } catch (exception) {
    log.report(`! ${engine.name}: the block of a command`, exception);
  }
}

// As the engine on MRI gives a reply.
function toRuby(reply) {
  if (reply === null || reply === undefined) return ruby.nil;
  if (Array.isArray(reply)) return reply.map(toRuby);
  if (reply instanceof Error) return ruby.error(REDIS, reply.message);
  return Buffer.isBuffer(reply) ? text.fromBytes(reply) : reply;
}

// Methods that wait on MRI: here they are Promises.
function flush(engine, seconds) {
  return new Promise((done) => engine.flush(seconds * 1000, done));
}

function close(engine, seconds) {
  return new Promise((done) => engine.close(seconds * 1000, () => done(ruby.nil)));
}

function waitUntilConnected(engine, seconds) {
  const { outage } = engine;
  engine.wake();
  return new Promise((done, fail) => {
    engine.whenChanged(seconds * 1000, () => outage.isHere, () => {
      if (outage.isHere) return done(ruby.nil);
      const reason = outage.reason ?? `no answer within ${seconds} s`;
      return fail(ruby.error(REDIS, `${engine.name} is not available: ${reason}`));
    });
  });
}

module.exports = { close, command, flush, make, publish, waitUntilConnected };
