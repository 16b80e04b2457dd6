// The HTTP servers that there are: Node's own, and uWebSockets.js where it can be loaded.
// SPDX-License-Identifier: MIT

"use strict";

const cluster = require("node:cluster");
const log = require("./log");
const node = require("./listener");
const uwsListener = require("./uws/listener");
const { load } = require("./uws/load");

// Says once, not once for each worker, that another one serves.
function settleEngine(options) {
  if (options.engine === "node" || cluster.isWorker) return;
  const { line } = load(options.uwsFile);
  if (line) log.error(`rondo: uWebSockets.js cannot be loaded (${line}): Node's own HTTP server serves`);
}

// @return an object with makeServer, listen and drain
function chooseEngine(options) {
  if (options.engine === "node") return node;
  const { uws } = load(options.uwsFile);
  if (!uws) return node;
  return { ...uwsListener, makeServer: (application, settings) => uwsListener.makeServer(uws, application, settings) };
}

module.exports = { chooseEngine, settleEngine };
