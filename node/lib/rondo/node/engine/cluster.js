// The master of several workers: it has no application and no clients. It starts workers, again when one has died, and
// passes on what they publish.
// SPDX-License-Identifier: MIT

"use strict";

const cluster = require("node:cluster");
const log = require("./log");
const { Hub } = require("./hub");

// A worker that dies soon after its start is started again later and later.
const SOON = 5000;
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 10000;

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
    this.ready = 0;
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
    worker.on("message", (message) => this.take(slot, message));
    worker.on("error", () => {}); // a message to a worker that has just died
    worker.on("exit", (code, signal) => this.exited(slot, worker, code, signal));
  }

  take(slot, message) {
    if (message.failed) return this.fail(slot, message.failed);
    if (!message.booted) return undefined;
    log.info(`- Worker ${slot.index} (PID: ${slot.worker.process.pid}) booted`);
    this.ready += 1;
    if (this.ready === this.count) this.onListening(message.booted);
    return undefined;
  }

  // What no worker can do once will not go better the next time.
  fail(slot, line) {
    if (this.ready >= this.count) return log.error(`Worker ${slot.index}: ${line}`);
    if (!this.failed) log.error(`rondo: ${line}`);
    this.failed = true;
    return this.stop("SIGINT");
  }

  exited(slot, worker, code, signal) {
    this.hub.remove(worker);
    slot.worker = null;
    if (this.stopping) return this.endIfDone();
    const cause = signal || `exit ${code}`;
    log.error(`Worker ${slot.index} (PID: ${worker.process.pid}) ended by ${cause}: starting another one`);
    slot.pause = Date.now() - slot.began > SOON ? FIRST_PAUSE : Math.min(slot.pause * 2, LONGEST_PAUSE);
    return setTimeout(() => this.stopping || this.fork(slot), slot.pause);
  }

  // A second signal does not wait.
  stop(signal) {
    const again = this.stopping !== null;
    this.stopping = signal;
    for (const { worker } of this.slots) {
      if (worker && again) worker.process.kill("SIGKILL");
      if (worker && !again && worker.isConnected()) worker.send({ stop: signal });
    }
    this.endIfDone();
  }

  endIfDone() {
    if (this.slots.every(({ worker }) => worker === null)) this.onEnd(this.failed ? 1 : 0);
  }
}

// In a worker: what the master says.
function obey(worker) {
  const end = () => process.exit(0);
  process.on("message", (message) => {
    if (message.stop) worker.stop(message.stop, end);
  });
  process.on("disconnect", () => worker.stop("SIGTERM", end));
}

module.exports = { Master, obey };
