// Requests with the field `Upgrade`. Node stops to read such a connection as HTTP: a WebSocket takes it over, and for
// anything else the answer of the application is its last one.
// SPDX-License-Identifier: MIT

"use strict";

const http = require("node:http");
const body = require("./body");
const { factsOf } = require("./env");
const { reason } = require("./head");
const { refuseRequest } = require("./response");
const { refusalOf } = require("./rules");
const { upgradeKind } = require("./upgrade");
const { openSocket } = require("./websocket");

// A response for a socket that Node's server has given away.
function makeResponse(req, socket) {
  const res = new http.ServerResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  res.on("finish", () => {
    res.detachSocket(socket);
    socket.destroySoon();
  });
  socket.on("error", () => socket.destroy());
  return res;
}

// Node has not read the body of such a request. One with a length is read here; chunks are not.
function readBody(facts, socket, head, done) {
  if (facts.coding !== null) return done(501);
  if (facts.length === null) return done(0, null);
  const status = body.refusal(facts);
  return status === 0 ? body.collectFrom(socket, head, facts.length, done) : done(status);
}

// For the event `upgrade`. The answer to the request before it leaves first.
function handleUpgrade(requests, req, socket, head) {
  const before = socket._httpMessage;
  if (before) {
    socket.on("error", () => socket.destroy());
    before.once("close", () => handleUpgrade(requests, req, socket, head));
    return undefined;
  }
  const res = makeResponse(req, socket);
  const facts = factsOf(req.rawHeaders);
  const refused = refusalOf(req, facts);
  if (refused !== 0) return refuseRequest(res, refused, reason(refused), true);
  if (upgradeKind(req, facts) === "websocket") {
    return requests.call(req, res, facts, null, (response, result, handler) => {
      openSocket(req, socket, head, response, result, handler);
    });
  }
  return readBody(facts, socket, head, (status, bytes) => {
    if (status !== 0) return refuseRequest(res, status, reason(status), true);
    return requests.call(req, res, facts, bytes);
  });
}

module.exports = { handleUpgrade };
