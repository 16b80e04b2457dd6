// Memory of messages of WebSockets that have not come completely, or that wait for a callback: of all connections
// together at most total_message_bytes. A part of each connection does not count, so small messages always arrive.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");
const log = require("./log");
const stopping = require("./stopping");

const FREE_BYTES = 16384; // of each connection
const LOOK = 1000;

let waiting = 0;

const excess = (bytes) => Math.max(bytes - FREE_BYTES, 0);

function count(endpoint, size) {
  const before = excess(endpoint.waitingBytes);
  endpoint.waitingBytes += size;
  waiting += excess(endpoint.waitingBytes) - before;
}

// A message waits. Returns whether there was room.
function hold(endpoint, size) {
  count(endpoint, size);
  if (waiting <= limits.totalMessageBytes) return true;
  count(endpoint, -size);
  return false;
}

// It waits no more. What a connection had when it ended has been released already.
function release(endpoint, size) {
  count(endpoint, -Math.min(size, endpoint.waitingBytes));
}

// Closes those that have most of messages that have not come completely.
function look() {
  const parts = [];
  let sum = waiting;
  for (const endpoint of stopping.endpoints) {
    const size = excess(endpoint.incomplete());
    if (size > 0) parts.push({ endpoint, size });
    sum += size;
  }
  if (sum <= limits.totalMessageBytes) return;
  parts.sort((one, other) => one.size - other.size);
  let closed = 0;
  while (sum > limits.totalMessageBytes && parts.length > 0) {
    const { endpoint, size } = parts.pop();
    endpoint.abort(1013);
    sum -= size;
    closed += 1;
  }
  log.error(`${closed} connections were closed: their messages are too large together (total_message_bytes)`);
}

function watch() {
  setInterval(look, LOOK).unref();
}

module.exports = { hold, release, watch };
