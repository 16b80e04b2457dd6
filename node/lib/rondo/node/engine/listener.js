// The server of a process: Node's own HTTP server, with the limits of Rondo.
// SPDX-License-Identifier: MIT

"use strict";

const http = require("node:http");
const https = require("node:https");
const limits = require("./limits");
const stopping = require("./stopping");
const { Clients } = require("./clients");
const { Connections } = require("./connections");
const { dateNow } = require("./head");
const { Requests } = require("./requests");
const { handleUpgrade } = require("./handshake");
const { wait, waitGivenAway } = require("./turns");

function options(tls) {
  return {
    ...tls, maxHeaderSize: limits.maxHeadBytes, keepAlive: false, noDelay: true, requireHostHeader: true,
    keepAliveTimeout: limits.keepAliveTimeout, headersTimeout: limits.headTimeout, requestTimeout: 0,
    connectionsCheckingInterval: 5000, insecureHTTPParser: false, handshakeTimeout: limits.headTimeout,
  };
}

// @param application what config.ru runs
// @param settings of options.js
function makeServer(application, settings) {
  const { tls } = settings;
  const requests = new Requests(application, tls ? "https" : "http", settings.hints);
  const server = tls ? https.createServer(options(tls)) : http.createServer(options(null));
  server.maxHeadersCount = 0;
  server.on("request", (req, res) => (isItsTurn(res) ? requests.take(req, res) : wait(requests, "take", req, res)));
  server.on("checkContinue", (req, res) => {
    return isItsTurn(res) ? requests.takeExpecting(req, res) : wait(requests, "takeExpecting", req, res);
  });
  server.on("upgrade", (req, socket, head) => {
    waitGivenAway(socket, () => handleUpgrade(requests, req, socket, head));
  });
  server.on("connect", (req, socket) => waitGivenAway(socket, () => refuseConnect(socket)));
  server.on("clientError", (error, socket) => refuse(error, socket));
  new Connections(limits.maxConnections).watch(server);
  server.rondoClients = new Clients(limits);
  server.rondoClients.watch(server);
  return server;
}

// Node gives a socket to the answer whose turn it is. Behind the last answer of a connection nobody has a turn.
function isItsTurn(res) {
  return res.socket !== null && res.socket.writable;
}

// Bytes that are no request: the answer of Node's parser, with the reasons of RFC 9110.
const STATUSES = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large", ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

// The answers to requests before it leave first.
function refuse(error, socket) {
  const answer = socket._httpMessage;
  if (socket.rondoRefused) return; // its answer says more
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
  } else if (answer && answer.req.complete) {
    answer.once("close", () => refuse(error, socket));
  } else {
    socket.end(refusalText(STATUSES[error.code] || "400 Bad Request"));
  }
}

function refuseConnect(socket) {
  socket.on("error", () => socket.destroy());
  socket.write(refusalText("405 Method Not Allowed"));
  socket.destroySoon();
}

function refusalText(status) {
  const body = `${status.slice(4)}\n`;
  return `HTTP/1.1 ${status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${body.length}\r\n` +
    `connection: close\r\ndate: ${dateNow()}\r\n\r\n${body}`;
}

// Listens; `host` is undefined for every address. Calls `done(error, addresses)`.
function listen(server, host, port, done) {
  const failed = (error) => done(error);
  server.once("error", failed);
  server.listen({ host, port, backlog: limits.backlog }, () => {
    server.off("error", failed);
    done(null, server.address());
  });
}

// How often connections are looked at that have become idle after the stop.
const LOOK = 50;

// Node does not count a connection as idle that has not said anything yet, as browsers open in advance.
function closeIdle(server) {
  server.closeIdleConnections();
  server.rondoClients.closeSilent();
}

// No more connections; idle ones end, and what is in flight may finish until `deadline` milliseconds have gone.
function drain(server, deadline, done) {
  stopping.begun = true;
  const last = setTimeout(() => server.rondoClients.closeAll(), deadline);
  const idle = setInterval(() => closeIdle(server), LOOK);
  for (const endpoint of [...stopping.endpoints]) endpoint.shutdown();
  server.close(() => {
    clearTimeout(last);
    clearInterval(idle);
    done();
  });
}

module.exports = { drain, listen, makeServer };
