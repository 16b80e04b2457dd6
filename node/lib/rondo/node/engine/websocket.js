// A WebSocket, by the package ws: handshake, messages and their limits.
// SPDX-License-Identifier: MIT

"use strict";

const { WebSocketServer } = require("ws");
const limits = require("./limits");
const log = require("./log");
const messages = require("./messages");
const ruby = require("./ruby");
const { Endpoint } = require("./endpoint");
const { fieldsOf, readHead } = require("./head");

// The application's fields come first, and names are in small letters, as on MRI.
function completeHead(lines, req) {
  const { rondoFields: fields } = req;
  const own = [];
  for (let at = 0; at < fields.length; at += 2) own.push(`${fields[at]}: ${fields[at + 1]}`);
  const [status, ...rest] = lines;
  const small = rest.map((line) => line.replace(/^[^:]+/, (name) => name.toLowerCase()));
  lines.splice(0, lines.length, status, ...own, ...small);
}

// With the parameters of docs/decisions/0009: neither side keeps a window from one message to the next.
function makeServer() {
  const deflate = {
    serverNoContextTakeover: true, clientNoContextTakeover: true, threshold: limits.deflateThreshold,
    zlibDeflateOptions: { level: 1, memLevel: 8 },
  };
  const made = new WebSocketServer({
    noServer: true, clientTracking: false, maxPayload: limits.maxMessageBytes, perMessageDeflate: deflate,
    handleProtocols: (offered, req) => req.rondoProtocol || false,
  });
  made.on("headers", completeHead);
  messages.watch();
  return made;
}

// Made for the first handshake: the limits can be set until then.
let server = null;

class WebSocketEndpoint extends Endpoint {
  constructor(socket, env, handler, ws) {
    super("websocket", env, handler, socket);
    this.ws = ws;
    this.lastHeard = Date.now();
    ws.on("message", (bytes, isBinary) => this.take(bytes, isBinary));
    ws.on("close", (code, reason) => {
      messages.release(this, this.waitingBytes);
      this.ended(code, reason.toString());
    });
    ws.on("error", (error) => { this.closeCode ||= error[Symbol.for("status-code")] || 0; });
    ws.on("pong", () => { this.lastHeard = Date.now(); });
    this.setTimeout(limits.pingInterval);
    this.opened();
  }

  take(bytes, isBinary) {
    this.lastHeard = Date.now();
    const data = isBinary ? ruby.Opal.enc(bytes.toString("latin1"), "ASCII-8BIT") : bytes.toString("utf8");
    if (!this.busy) return this.call("on_message", data);
    if (!messages.hold(this, bytes.length)) return this.abort(1013);
    this.enqueue(() => {
      messages.release(this, bytes.length);
      return this.invoke(this.handler, "on_message", [data]);
    });
    if (this.jobs.length >= limits.maxWaitingMessages) this.ws.pause();
    return undefined;
  }

  // Bytes of a message that has not come completely; only ws knows them.
  incomplete() {
    const receiver = this.ws._receiver;
    return receiver ? (receiver._bufferedBytes || 0) + (receiver._totalPayloadLength || 0) : 0;
  }

  caughtUp() {
    if (this.ws.isPaused) this.ws.resume();
  }

  // A write that has failed ends the socket in the next turn. Until then it throws away what it is given, and no byte waits.
  isOpen() {
    return this.ws.readyState === 1 && this.socket.writable;
  }

  pending() {
    return this.ws.readyState === 3 ? -1 : this.ws.bufferedAmount;
  }

  write(data) {
    if (!this.isOpen() || !this.hasRoom()) return false;
    this.send(data, typeof data !== "string");
    return true;
  }

  event(data) {
    return data === null ? this.isOpen() : this.write(data);
  }

  send(data, binary) {
    if (this.drains) {
      this.ws.send(data, { binary }, () => this.drained());
    } else {
      this.ws.send(data, { binary });
    }
  }

  // A published message: text as a string, with its bytes made once for all clients.
  deliver(message, kind) {
    if (!this.isOpen() || !this.hasRoom()) return;
    const binary = kind === null ? message.isBinary : kind === "binary" || message.isBinary;
    this.send(message.bytes, binary);
  }

  close(code, reason) {
    if (this.ws.readyState > 1) return;
    this.noteEnd(code, reason);
    this.ws.close(code, reason);
    setTimeout(() => this.ws.terminate(), limits.closeTimeout).unref();
  }

  abort(code) {
    this.noteEnd(code, "");
    this.ws.terminate();
  }

  // After this silence a ping, after twice that time the end.
  look() {
    if (this.ws.isPaused) { // its pongs are not read, but what is sent to a client that is gone fails
      this.lastHeard = Date.now();
      return this.ws.ping();
    }
    const silence = Date.now() - this.lastHeard;
    if (silence >= 2 * this.timeout) {
      this.abort(1006);
    } else if (silence >= this.timeout && this.isOpen()) {
      this.ws.ping();
    }
  }
}

// Only a name that the client has offered: browsers close the connection after any other.
function protocolOf(req, fields) {
  const at = fields.findIndex((field, index) => index % 2 === 0 && field.toLowerCase() === "sec-websocket-protocol");
  if (at < 0) return null;
  const [, names] = fields.splice(at, 2);
  const offered = (req.headers["sec-websocket-protocol"] || "").split(",").map((name) => name.trim());
  const chosen = names.split(",").map((name) => name.trim()).find((name) => offered.includes(name));
  if (chosen === undefined) log.error("the client has offered none of the names of sec-websocket-protocol");
  return chosen || null;
}

// Switches the connection of a handshake; `early` has what the client has sent after it.
function openSocket(req, socket, early, response, result, handler) {
  [response.status, response.headers, response.body] = [101, result[1], result[2]];
  try {
    req.rondoFields = handshakeFields(req, result[1]);
  } catch (exception) {
    response.fail(exception);
    return;
  }
  response.res.detachSocket(socket);
  takeOver(req, socket, early.give(), response, handler);
}

// ws answers extensions that are not valid by itself, and then calls nobody.
function takeOver(req, socket, head, response, handler) {
  let isOpen = false;
  server ??= makeServer();
  server.handleUpgrade(req, socket, head, (ws) => {
    isOpen = true;
    response.end();
    new WebSocketEndpoint(socket, response.env, handler, ws);
  });
  if (isOpen) {
    if (socket.isPaused()) socket.resume();
  } else {
    response.leave([400, ruby.nil, response.body]);
  }
}

// The fields of the application for the answer to a handshake; the protocol is kept apart. It raises for a wrong head.
function handshakeFields(req, headers) {
  const fields = fieldsOf(readHead(headers).text).filter((value, index, all) => keeps(all[index - (index % 2)]));
  req.rondoProtocol = protocolOf(req, fields);
  req.headers["sec-websocket-protocol"] = req.rondoProtocol || undefined; // ws refuses lists that are not valid
  return fields;
}

function keeps(name) {
  return !["content-length", "content-type", "upgrade", "connection", "date"].includes(name.toLowerCase());
}

module.exports = { handshakeFields, openSocket };
