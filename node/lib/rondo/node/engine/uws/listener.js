// The server of a process, by uWebSockets.js: the same functions as ../listener.js.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("../limits");
const stopping = require("../stopping");
const { Clients } = require("../clients");
const { Requests, refuse } = require("../requests");
const { Exchange } = require("./exchange");
const { Peer, Request } = require("./request");
const { behavior, opener } = require("./socket");

// The library ends its connections itself.
class OwnClients extends Clients {
  constructor(server) {
    super(limits);
    this.server = server;
  }

  closeAll() {
    this.server.app.close();
  }
}

class Server {
  constructor(uws, application, settings) {
    this.uws = uws;
    this.isEncrypted = settings.tls !== null;
    this.requests = new Requests(application, this.isEncrypted ? "https" : "http", false);
    this.rondoClients = new OwnClients(this);
    this.rondoClients.begin();
    this.app = this.isEncrypted ? uws.SSLApp(filesOf(settings.tls)) : uws.App();
    this.app.ws("/*", behavior(uws, this.rondoClients, (raw, request, context) => this.take(raw, request, context)));
    this.app.any("/*", (raw, request) => this.take(raw, request, null));
    this.token = null;
  }

  // @param context of a request that may become a WebSocket, else null
  take(raw, request, context) {
    const req = new Request(request);
    const res = new Exchange(raw, req);
    req.socket = new Peer(res, raw, this.isEncrypted);
    res.socket = req.socket;
    this.rondoClients.sockets.add(res);
    res.on("close", () => this.rondoClients.forget(res));
    req.read(raw);
    // The library takes chunks that RFC 9112 forbids, so nothing behind them is trusted.
    if (req.isChunked) res.shouldKeepAlive = false;
    const refused = req.refusal();
    if (refused !== 0) return refuse(req, res, refused);
    const expected = request.getHeader("expect");
    if (expected !== "" && expected.toLowerCase() !== "100-continue") return refuse(req, res, 417);
    return this.requests.take(req, res, context === null ? null : opener(req, res, context));
  }
}

function filesOf(tls) {
  const { ca, cert, key } = tls.files;
  return { cert_file_name: cert, key_file_name: key, ...(ca === undefined ? {} : { ca_file_name: ca }) };
}

// Workers share the port: the kernel gives each connection to one of them. Calls `done(error, address)`.
function listen(server, host, port, done) {
  const called = (token) => {
    if (!token) return done(new Error("the library does not say why"));
    server.token = token;
    return done(null, { address: host || "::", family: /^[\d.]+$/.test(host) ? "IPv4" : "IPv6",
                        port: server.uws.us_socket_local_port(token) });
  };
  if (host === undefined) {
    server.app.listen(port, called);
  } else {
    server.app.listen(host, port, called);
  }
}

// How often it is looked whether everything has ended.
const LOOK = 20;

// No more connections, and what is in flight may finish until `deadline` milliseconds have gone.
function drain(server, deadline, done) {
  stopping.begun = true;
  server.uws.us_listen_socket_close(server.token);
  const began = performance.now();
  for (const endpoint of [...stopping.endpoints]) endpoint.shutdown();
  const look = setInterval(() => {
    if (server.rondoClients.sockets.size > 0 && performance.now() - began < deadline) return;
    clearInterval(look);
    server.rondoClients.closeAll();
    setImmediate(done);
  }, LOOK);
}

// @param uws the library
function makeServer(uws, application, settings) {
  return new Server(uws, application, settings);
}

module.exports = { drain, listen, makeServer };
