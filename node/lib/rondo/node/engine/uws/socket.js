// A WebSocket of uWebSockets.js. The library has the handshake, the frames and their limits.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("../limits");
const messages = require("../messages");
const ruby = require("../ruby");
const { Endpoint } = require("../endpoint");
const { handshakeFields } = require("../websocket");
const { toField } = require("./exchange");

class UwsEndpoint extends Endpoint {
  constructor(ws, socket, env, handler) {
    super("websocket", env, handler, socket);
    this.ws = ws; // null when it has gone
    this.lastHeard = Date.now();
    this.waitingBytes = 0; // of messages whose callback was not called yet
    this.sent = 0; // bytes
    this.setTimeout(limits.pingInterval);
  }

  // The library cannot stop to read: a client that sends more than its callbacks take is closed.
  take(data, size) {
    this.heard();
    if (!this.busy) return this.call("on_message", data);
    if (this.jobs.length >= limits.maxWaitingBlocks || this.waitingBytes > limits.maxPendingBytes) return this.abort(1013);
    if (!messages.hold(this, size)) return this.abort(1013);
    return this.enqueue(() => {
      messages.release(this, size);
      return this.invoke(this.handler, "on_message", [data]);
    });
  }

  // The library does not tell what it has of a message that has not come completely.
  incomplete() {
    return 0;
  }

  heard() {
    this.lastHeard = Date.now();
  }

  isOpen() {
    return this.ws !== null;
  }

  pending() {
    return this.ws === null ? -1 : this.ws.getBufferedAmount();
  }

  write(data) {
    if (!this.isOpen() || !this.hasRoom()) return false;
    this.send(data, typeof data !== "string", data.length);
    return true;
  }

  event(data) {
    return data === null ? this.isOpen() : this.write(data);
  }

  // What Clients asks: how much waits, how much has left, and the end.
  get writableLength() {
    return this.ws === null ? 0 : this.pending();
  }

  get taken() {
    return this.sent - this.writableLength;
  }

  get remoteAddress() {
    return this.socket.remoteAddress;
  }

  destroy() {
    this.abort(1013);
  }

  send(data, binary, length) {
    this.sent += length;
    this.ws.send(data, binary, length >= limits.deflateThreshold);
    if (this.drains && this.pending() === 0) setImmediate(() => this.drained());
  }

  // A published message.
  deliver(message, kind) {
    if (!this.isOpen() || !this.hasRoom()) return;
    const binary = kind === null ? message.isBinary : kind === "binary" || message.isBinary;
    this.send(message.bytes, binary, message.bytes.length);
  }

  // The library calls back before it returns.
  close(code, reason) {
    if (this.ws === null) return;
    this.noteEnd(code, reason);
    this.ws.end(code, reason);
  }

  abort(code) {
    if (this.ws === null) return;
    this.noteEnd(code, "");
    this.ws.close();
  }

  gone(code, reason) {
    this.ws = null;
    messages.release(this, this.waitingBytes);
    this.ended(code, reason);
  }

  // After this silence a ping, after twice that time the end.
  look() {
    const silence = Date.now() - this.lastHeard;
    if (silence >= 2 * this.timeout) {
      this.abort(1006);
    } else if (silence >= this.timeout && this.isOpen()) {
      this.ws.ping();
    }
  }
}

// What the library calls for each of its WebSockets; `data.open` comes with the handshake.
function behavior(uws, clients, upgrade) {
  messages.watch();
  const endpointOf = (ws) => ws.getUserData().endpoint;
  return {
    upgrade,
    maxPayloadLength: limits.maxMessageBytes, maxBackpressure: 2 * limits.maxPendingBytes, idleTimeout: 0,
    sendPingsAutomatically: false, compression: uws.SHARED_COMPRESSOR | uws.SHARED_DECOMPRESSOR,
    open: (ws) => {
      const data = ws.getUserData();
      data.endpoint = data.open(ws);
      clients.sockets.add(data.endpoint);
      data.endpoint.opened();
    },
    message: (ws, bytes, isBinary) => {
      const data = Buffer.from(bytes);
      const given = isBinary ? ruby.Opal.enc(data.toString("latin1"), "ASCII-8BIT") : data.toString("utf8");
      endpointOf(ws).take(given, data.length);
    },
    drain: (ws) => endpointOf(ws).drained(),
    ping: (ws) => endpointOf(ws).heard(),
    pong: (ws) => endpointOf(ws).heard(),
    close: (ws, code, reason) => {
      const endpoint = endpointOf(ws);
      clients.forget(endpoint);
      endpoint.gone(code, Buffer.from(reason).toString());
    },
  };
}

// Makes a WebSocket of an exchange; for `response.openSocket`.
function opener(req, res, context) {
  return (response, result, handler) => {
    let fields;
    [response.status, response.headers, response.body] = [101, result[1], result[2]];
    if (res.ended) return response.leave([101, result[1], result[2]]); // the client has left
    try {
      fields = handshakeFields(req, result[1]);
    } catch (exception) {
      return response.fail(exception);
    }
    const { raw, socket } = res;
    const open = (ws) => new UwsEndpoint(ws, socket, response.env, handler);
    response.end();
    res.upgraded();
    raw.cork(() => {
      raw.writeStatus("101 Switching Protocols");
      for (let at = 0; at < fields.length; at += 2) raw.writeHeader(fields[at], toField(fields[at + 1]));
      raw.upgrade({ open }, req.headers["sec-websocket-key"], req.rondoProtocol || "",
                  req.headers["sec-websocket-extensions"] || "", context);
    });
    return undefined;
  };
}

module.exports = { behavior, opener };
