// Requests with the field `Upgrade`. Node stops to read such a connection as HTTP: a WebSocket takes it over, and for
// anything else the answer of the application is its last one.
// SPDX-License-Identifier: MIT

"use strict";

const http = require("node:http");
const body = require("./body");
const limits = require("./limits");
const { refuseRequest } = require("./response");
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
function readBody(req, socket, head, done) {
  const length = Number(req.headers["content-length"] || 0);
  if (req.headers["transfer-encoding"] !== undefined) return done(501);
  if (length > limits.maxBodyBytes) return done(413);
  let parts = head;
  const take = (part) => {
    parts = Buffer.concat([parts, part]);
    if (parts.length >= length) {
      socket.off("data", take);
      done(0, parts.subarray(0, length));
    }
  };
  socket.on("data", take);
  take(body.EMPTY);
  return undefined;
}

// For the event `upgrade`.
function handleUpgrade(requests, req, socket, head) {
  const res = makeResponse(req, socket);
  if (upgradeKind(req) === "websocket") {
    return requests.call(req, res, body.EMPTY, false, (response, result, handler) => {
      openSocket(req, socket, head, response, result, handler);
    });
  }
  return readBody(req, socket, head, (status, bytes) => {
    if (status !== 0) return refuseRequest(res, status, http.STATUS_CODES[status], true);
    return requests.call(req, res, bytes, body.hasBody(req));
  });
}

module.exports = { handleUpgrade };
