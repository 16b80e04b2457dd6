// The master of several workers: it has no application and no clients. It starts workers, again when one has died, and
// passes on what they publish.
// SPDX-License-Identifier: MIT

"use strict";

const cluster = require("node:cluster");
const limits = require("./limits");
const log = require("./log");
const { Hub } = require("./hub");

// A worker that dies soon after its start is started again later and later.
const SOON = 5000;
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 10000;
// What a worker may take to end when its time to let requests finish is over.
const LAST_PAUSE = 5000;

class Master {
  // @param environment of the workers
  // @param onListening called with the address when all workers serve for the first time
  // @param onEnd called with the exit code
  constructor(count, environment, onListening, onEnd) {
    this.count = count;
    this.environment = environment;
    this.onListening = onListening;
    this.onEnd = onEnd;
    this.hub = new Hub();
    this.slots = [];
    this.booted = new Set(); // slots whose workers have served
    this.listening = false;
    this.stopping = null;
    this.failed = false;
  }

  start() {
    cluster.setupPrimary({ serialization: "advanced" });
    for (let index = 0; index < this.count; index += 1) {
      this.slots.push({ index, pause: FIRST_PAUSE, worker: null });
      this.fork(this.slots[index]);
    }
  }

  fork(slot) {
    const worker = cluster.fork(this.environment);
    slot.worker = worker;
    slot.began = Date.now();
    this.hub.add(worker);
    worker.on("message", (message) => this.take(slot, worker, message));
    worker.on("error", (error) => this.broken(slot, worker, error));
    worker.on("exit", (code, signal) => this.exited(slot, worker, code, signal));
  }

  // A process that there is has got no message, because it has just died. Of one that the system did not start nothing
  // else is heard.
  broken(slot, worker, error) {
    if (worker.process.pid === undefined && slot.worker === worker) this.over(slot, worker, `cannot be started: ${error.message}`);
  }

  // What a worker says may arrive after its end.
  take(slot, worker, message) {
    if (message.failed) return this.fail(slot, message.failed);
    if (!message.booted) return undefined;
    log.info(`- Worker ${slot.index} (PID: ${worker.process.pid}) booted`);
    this.booted.add(slot);
    if (this.booted.size < this.count || this.listening) return undefined;
    this.listening = true;
    return this.onListening(message.booted);
  }

  // What no worker can do once will not go better the next time.
  fail(slot, line) {
    if (this.listening) return log.error(`Worker ${slot.index}: ${line}`);
    if (!this.failed) log.error(`rondo: ${line}`);
    this.failed = true;
    return this.stop("SIGINT");
  }

  exited(slot, worker, code, signal) {
    this.over(slot, worker, `(PID: ${worker.process.pid}) ended by ${signal || `exit ${code}`}`);
  }

  // @param cause for the log
  over(slot, worker, cause) {
    this.hub.remove(worker);
    slot.worker = null;
    if (this.stopping) return this.endIfDone();
    log.error(`Worker ${slot.index} ${cause}: starting another one`);
    slot.pause = Date.now() - slot.began > SOON ? FIRST_PAUSE : Math.min(slot.pause * 2, LONGEST_PAUSE);
    return setTimeout(() => this.stopping || this.fork(slot), slot.pause);
  }

  // A second signal does not wait. A worker that does not end in its time is killed.
  stop(signal) {
    const again = this.stopping !== null;
    this.stopping = signal;
    if (!again) setTimeout(() => this.kill(), (signal === "SIGTERM" ? limits.drainTimeout : 0) + LAST_PAUSE);
    for (const { worker } of this.slots) {
      if (worker && again) worker.process.kill("SIGKILL");
      if (worker && !again && worker.isConnected()) worker.send({ stop: signal });
    }
    this.endIfDone();
  }

  kill() {
    for (const { index, worker } of this.slots.filter((slot) => slot.worker)) {
      log.error(`Worker ${index} (PID: ${worker.process.pid}) does not stop: it is killed`);
      worker.process.kill("SIGKILL");
    }
  }

  endIfDone() {
    if (this.slots.every(({ worker }) => worker === null)) this.onEnd(this.failed ? 1 : 0);
  }
}

// In a worker: what the master says, from the beginning. Returns what has to be called with the Worker that serves.
function obey() {
  let serving = null;
  const end = () => process.exit(0);
  const stop = (signal) => (serving ? serving.stop(signal, end) : end());
  process.on("message", (message) => message.stop && stop(message.stop));
  process.on("disconnect", () => stop("SIGTERM"));
  cluster.worker.exitedAfterDisconnect = true; // otherwise Node ends a worker at once when its master is gone
  return (worker) => { serving = worker; };
}

module.exports = { Master, obey };
