// Where a build begins: the only process, the master of a cluster, or one of its workers.
// SPDX-License-Identifier: MIT

"use strict";

const cluster = require("node:cluster");
const log = require("./log");
const pidFile = require("./pid_file");
const { Link } = require("./hub");
const { Master, obey } = require("./cluster");
const { settleEngine } = require("./engines");
const { MasterEngine } = require("./master_engine");
const { OptionError, parse } = require("./options");
const { RedisEngine } = require("./redis/engine");
const { redisUrl } = require("./redis/settings");
const { serve, surviveExceptions, tryAddress } = require("./worker");

// The variables that tell workers the port, and that there is an engine in the master.
const PORT = "RONDO_NODE_PORT";
const MASTER_ENGINE = "RONDO_NODE_MASTER_ENGINE";
const SIGNALS = ["SIGINT", "SIGTERM"];

function url(options, address) {
  const host = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return `${options.tls ? "https" : "http"}://${host}:${address.port}`;
}

function announce(options, address) {
  const wrong = options.pidFile ? pidFile.write(options.pidFile) : null;
  if (wrong) {
    log.error(`rondo: ${wrong}`);
    end(options, 1);
  }
  log.info(`* Listening on ${url(options, address)}\nUse Ctrl-C to stop`);
}

function end(options, code) {
  if (options.pidFile) pidFile.remove(options.pidFile);
  if (code === 0) log.info("- Goodbye!");
  process.exit(code);
}

// Calls `stop(signal)` for the signals that end a server.
function onSignals(stop) {
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      log.info("- Gracefully stopping, waiting for requests to finish");
      stop(signal);
    });
  }
}

// uWebSockets.js shares its port with others, so the address is tried before.
function runSingle(application, options) {
  log.info(`Rondo starting on Node ${process.versions.node} in single mode...`);
  if (options.engine === "node") return serveAlone(application, options);
  return tryAddress(options, (line, port) => {
    if (line) {
      log.error(`rondo: ${line}`);
      return end(options, 1);
    }
    options.port = port;
    return serveAlone(application, options);
  });
}

function serveAlone(application, options) {
  serve(application, options, null, (line, worker) => {
    if (line) {
      log.error(`rondo: ${line}`);
      return end(options, 1);
    }
    onSignals((signal) => worker.stop(signal, () => end(options, 0)));
    surviveExceptions();
    return announce(options, worker.address);
  });
}

// The master tries the address first: what is wrong with it is said once, and port 0 becomes the same port for all
// workers, also for later ones.
function runMaster(options) {
  log.info(`Rondo starting on Node ${process.versions.node} in cluster mode (${options.workers} workers)...`);
  tryAddress(options, (line, port) => {
    if (line) {
      log.error(`rondo: ${line}`);
      return end(options, 1);
    }
    const { redisUrl: redis } = options;
    const environment = { [PORT]: String(port), [MASTER_ENGINE]: redis ? "redis" : "" };
    const master = new Master(options.workers, environment, (address) => announce(options, address),
                              (code) => closeEngine(master, () => end(options, code)));
    if (redis) new MasterEngine(master.hub, (deliver) => new RedisEngine(redis, {}, deliver));
    onSignals((signal) => {
      if (master.stopping) master.hub.engine?.hurry();
      master.stop(signal);
    });
    return master.start();
  });
}

function closeEngine({ hub: { engine } }, done) {
  return engine ? engine.close(done) : done();
}

// A terminal sends its signals to workers, too, but only the master decides.
function runWorker(application, options) {
  options.port = Number(process.env[PORT]);
  options.hasMasterEngine = process.env[MASTER_ENGINE] === "redis";
  for (const signal of SIGNALS) process.on(signal, () => {});
  const serving = obey();
  serve(application, options, new Link(), (line, worker) => {
    if (line) return process.send({ failed: line }, () => process.exit(1));
    serving(worker);
    surviveExceptions();
    return process.send({ booted: worker.address });
  });
}

// @param application path of the compiled application
exports.start = (application) => {
  try {
    const options = parse(process.argv.slice(2));
    if (options.logFile) log.open(options.logFile);
    settleEngine(options);
    if (cluster.isWorker) return runWorker(application, options);
    options.redisUrl = redisUrl(options.redis);
    return options.workers > 0 ? runMaster(options) : runSingle(application, options);
  } catch (error) {
    if (!(error instanceof OptionError) && error.code === undefined) throw error;
    log.error(`rondo: ${error.message}`);
    return process.exit(error instanceof OptionError ? 2 : 1);
  }
};
