// A process that serves: the only one, or one of a cluster.
// SPDX-License-Identifier: MIT

"use strict";

const net = require("node:net");
const env = require("./env");
const limits = require("./limits");
const log = require("./log");
const ruby = require("./ruby");
const text = require("./text");
const { Bus } = require("./bus");
const { Endpoint } = require("./endpoint");
const { chooseEngine } = require("./engines");
const { MasterLink } = require("./master_engine");
const redis = require("./redis/binding");

// How long connections have to end when the server is told to stop at once.
const AT_ONCE = 250;

// Loads the application and listens. Calls `done(line)` with what went wrong, or `done(null, worker)`.
function serve(applicationPath, options, link, done) {
  const bus = new Bus(link);
  if (options.hasMasterEngine) bus.engines.useMaster(new MasterLink(link));
  Endpoint.attach(bus);
  let application;
  try {
    application = ruby.load(applicationPath, { bus, limits, redis, text });
    if (options.redisUrl) ruby.constant("Rondo", "PubSub").$use_redis(options.redisUrl);
    env.prepare();
  } catch (exception) {
    log.report("the application", exception);
    return done("the application does not load");
  }
  const engine = chooseEngine(options);
  const server = engine.makeServer(application, options);
  return engine.listen(server, options.host, options.port, (error, address) => {
    if (error) return done(lineOf(error, options));
    return done(null, new Worker(engine, server, address, bus.engines));
  });
}

function lineOf(error, options) {
  const place = `${options.host || "*"}:${options.port}`;
  if (error.code === "EADDRINUSE") return `cannot listen on ${place}: the address is in use`;
  if (error.code === "EACCES") return `cannot listen on ${place}: ports below 1024 need privileges`;
  return `cannot listen on ${place}: ${error.code || error.message}`;
}

// Calls `done(line)`, or `done(null, port)` with a port that is free.
function tryAddress(options, done) {
  const server = net.createServer();
  server.once("error", (error) => done(lineOf(error, options)));
  server.listen({ host: options.host, port: options.port }, () => {
    const { port } = server.address();
    server.close(() => done(null, port));
  });
}

class Worker {
  constructor(engine, server, address, pubsub) {
    this.engine = engine;
    this.server = server;
    this.pubsub = pubsub;
    this.address = address;
    this.stopped = false;
  }

  // TERM lets requests finish, INT does not wait for them.
  stop(signal, done) {
    if (this.stopped) {
      this.pubsub.hurry();
      return this.server.rondoClients.closeAll();
    }
    this.stopped = true;
    const end = () => this.pubsub.close(done);
    return this.engine.drain(this.server, signal === "SIGTERM" ? limits.drainTimeout : AT_ONCE, end);
  }
}

// One exception outside of a call (in a timer, in a Promise) ends no other request.
function surviveExceptions() {
  process.on("uncaughtException", (exception) => log.report("outside of a request", exception));
  process.on("unhandledRejection", (exception) => log.report("outside of a request", exception));
}

module.exports = { serve, surviveExceptions, tryAddress };
