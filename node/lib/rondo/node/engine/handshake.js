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

const MOST_EARLY_BYTES = 65536;

// A response for a socket that Node's server has given away. As one of Node's own, it says `close` at its end and when
// the client leaves: that is known only while the socket is read.
function makeResponse(req, socket) {
  const res = new http.ServerResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  res.on("finish", () => {
    res.detachSocket(socket);
    socket.destroySoon();
    process.nextTick(() => {
      res.destroyed = true;
      res.emit("close");
    });
  });
  socket.on("error", () => socket.destroy());
  socket.on("end", endToo);
  return res;
}

// For the event `end` of a socket: who has ended his side gets no answer, as with Node's server.
function endToo() {
  this.end();
}

// What a client sends before its handshake is answered belongs to its WebSocket.
class Early {
  constructor(socket, head) {
    this.socket = socket;
    this.parts = [head];
    this.size = head.length;
    this.take = (part) => this.add(part);
    socket.on("data", this.take);
  }

  add(part) {
    this.parts.push(part);
    this.size += part.length;
    if (this.size > MOST_EARLY_BYTES) this.socket.pause();
  }

  // From now on the WebSocket listens.
  give() {
    this.socket.off("data", this.take);
    this.socket.off("end", endToo);
    return Buffer.concat(this.parts);
  }
}

// Node has not read the body of such a request. One with a length is read here; chunks are not.
function readBody(facts, socket, head, done) {
  if (facts.coding !== null) return done(501);
  if (facts.length === null) return done(0, null);
  const status = body.refusal(facts);
  return status === 0 ? body.collectFrom(socket, head, facts.length, done) : done(status);
}

// For the event `upgrade`, when it has its turn.
function handleUpgrade(requests, req, socket, head) {
  const res = makeResponse(req, socket);
  const facts = factsOf(req.rawHeaders);
  const refused = refusalOf(req, facts);
  if (refused !== 0) return refuseRequest(res, refused, reason(refused), true);
  if (upgradeKind(req, facts) === "websocket") {
    const early = new Early(socket, head);
    return requests.call(req, res, facts, null, (response, result, handler) => {
      openSocket(req, socket, early, response, result, handler);
    });
  }
  socket.resume();
  return readBody(facts, socket, head, (status, bytes) => {
    if (status !== 0) return refuseRequest(res, status, reason(status), true);
    return requests.call(req, res, facts, bytes);
  });
}

module.exports = { handleUpgrade };
