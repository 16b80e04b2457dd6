// Sends what the application returns: [status, headers, body]. The rows of the table "Body" in docs/REQUEST.md are the
// branches of `sendBody`.
// SPDX-License-Identifier: MIT

"use strict";

const fs = require("node:fs");
const files = require("./files");
const limits = require("./limits");
const log = require("./log");
const ruby = require("./ruby");
const stopping = require("./stopping");
const { release } = require("./body");
const { dateNow, readHead, reason, refuse, writeHead } = require("./head");
const { toWire } = require("./text");
const { writeWhole } = require("./whole");

const PLAIN_TEXT = "content-type: text/plain; charset=utf-8\r\n";

// The answer to one request. It closes the body exactly once, and then calls `rack.response_finished`.
class Response {
  constructor(req, res, env) {
    this.req = req;
    this.res = res;
    this.env = env;
    this.input = env.get("rack.input");
    this.held = 0; // what its body counts: body.js
    this.body = null;
    this.status = 0;
    this.headers = ruby.nil;
    this.finished = false; // the end of the answer was written
    this.closed = false; // the body was closed
    this.isChunked = false;
    this.isLast = false; // the connection ends after it
    this.left = Infinity; // bytes of the length that the application has promised
  }

  // @param result what the application returned
  send(result) {
    try {
      if (!Array.isArray(result) || result.length !== 3) {
        throw refuse("the application did not return [status, headers, body]");
      }
      this.body = result[2];
      this.status = statusOf(result[0]);
      this.headers = result[1];
      this.head = readHead(result[1]);
      this.sendBody();
    } catch (exception) {
      this.fail(exception);
    }
  }

  // The answer comes after its client has left: nothing of it is sent, and everything is closed.
  leave(result) {
    if (Array.isArray(result)) {
      [, this.headers, this.body = null] = result;
      this.status = Number(result[0]) || 0;
    }
    this.error = this.gone();
    this.end();
  }

  hasNoBody() {
    return this.status === 204 || this.status === 304;
  }

  sendBody() {
    const { body } = this;
    if (Array.isArray(body)) return this.sendParts(body);
    if (body === ruby.nil || body === undefined) throw refuse("the body is nil");
    if (this.hasNoBody()) return this.sendNothing();
    if (ruby.has(body, "to_path") && this.sendFile(body.$to_path())) return undefined;
    if (this.req.method === "HEAD") return this.sendNothing();
    if (this.head.length === null && ruby.has(body, "to_ary")) {
      const parts = body.$to_ary();
      if (Array.isArray(parts)) return this.sendParts(parts);
    }
    if (ruby.has(body, "each")) return this.sendEach();
    if (ruby.has(body, "call")) return this.sendCall();
    throw refuse("the body has neither each nor call");
  }

  // An Array leaves at once, with its length.
  sendParts(parts) {
    if (this.hasNoBody() || this.req.method === "HEAD") return this.sendNothing(parts);
    const wire = parts.length === 1 ? toWire(checkedPart(parts[0])) : join(parts);
    const length = Buffer.byteLength(wire);
    if (this.head.length !== null && this.head.length !== length) return this.sendPromised(wire);
    this.completeHead(length, false);
    if (!this.writeWhole(wire, length)) {
      this.passHead();
      this.res.end(this.head.isBytes ? Buffer.from(wire) : wire);
    }
    return this.end();
  }

  writeWhole(wire, length) {
    if (this.isLast || this.head.isBytes || typeof wire !== "string") return false;
    const text = `HTTP/1.1 ${this.status} ${reason(this.status)}\r\n${this.head.text}\r\n${wire}`;
    return writeWhole(this.res, this.status, text, length === wire.length);
  }

  // A body of another length than the application says: a longer one is cut, and the connection ends after both.
  sendPromised(wire) {
    this.head.close = true;
    this.writeHead(this.head.length);
    this.left = this.head.length;
    this.write(wire);
    this.finish();
  }

  sendNothing(parts) {
    const known = !this.hasNoBody() && (this.head.length !== null || parts !== undefined);
    const length = known && this.head.length === null ? lengthOf(parts) : this.head.length;
    this.writeHead(known ? length : null, true);
    this.res.end();
    return this.end();
  }

  sendFile(path) {
    if (path === ruby.nil) return false;
    const file = files.open(path.toString());
    if (!file) return false;
    const part = files.choose(this.req, this.status, file);
    this.status = part.status;
    if (part.status === 416) this.head.text = this.head.text.replace(/^content-type: .*\r\n/im, "");
    part.fields.forEach(([name, value]) => this.head.put(name, value));
    this.writeHead(part.length);
    if (this.req.method === "HEAD" || part.length === 0) {
      fs.closeSync(file.descriptor);
      this.res.end();
      this.end();
      return true;
    }
    const end = part.start + part.length - 1;
    const stream = fs.createReadStream(null, { fd: file.descriptor, start: part.start, end });
    stream.on("error", () => this.res.destroy());
    stream.on("end", () => this.endFile(stream.bytesRead === part.length));
    stream.on("close", () => this.end());
    this.res.on("close", () => stream.destroy());
    stream.pipe(this.res, { end: false });
    return true;
  }

  // A file may have become shorter than the length that was promised: only the end of the connection can say it.
  endFile(isWhole) {
    if (isWhole) {
      this.res.end();
    } else {
      this.res.destroy();
    }
  }

  sendEach() {
    this.begin();
    const done = ruby.send(this.body, "each", [], (part) => {
      this.checkOpen();
      this.write(checkedPart(part));
      return ruby.nil;
    });
    return this.whenDone(done, () => this.finish());
  }

  sendCall() {
    const stream = ruby.constant("Rondo", "Stream").$new();
    stream.response = this;
    stream.input = this.input;
    this.begin();
    return this.whenDone(this.body.$call(stream), () => this.closeBody());
  }

  // An application that waits returns a Promise.
  whenDone(result, next) {
    if (!(result instanceof Promise)) return next();
    return result.then(next).catch((exception) => this.fail(exception));
  }

  // The head of an answer whose length is not known.
  begin() {
    this.writeHead(this.head.length);
    this.left = this.head.length === null ? Infinity : this.head.length;
    if (!this.head.isBytes) this.res.flushHeaders();
    this.res.on("close", () => this.end());
  }

  // The fields of the server come last: the framing, `connection`, the date. HTTP/1.0 knows no chunks: its answer ends
  // with the connection.
  completeHead(length, isEmpty) {
    const { head, req } = this;
    const isOpen = length === null && !isEmpty;
    this.isChunked = isOpen && req.httpVersionMinor === 1;
    this.isLast = head.close || !this.res.shouldKeepAlive || stopping.begun || (isOpen && !this.isChunked);
    if (length !== null) {
      head.text += `content-length: ${length}\r\n`;
    } else if (this.isChunked) {
      head.text += "transfer-encoding: chunked\r\n";
    }
    if (this.isLast) {
      head.text += "connection: close\r\n";
    } else if (req.httpVersionMinor === 0) {
      head.text += "connection: keep-alive\r\n";
    }
    if (!head.dated) head.text += `date: ${dateNow()}\r\n`;
  }

  passHead() {
    writeHead(this.res, this.status, this.head.text, this.isChunked, this.isLast);
  }

  writeHead(length, isEmpty = false) {
    this.completeHead(length, isEmpty);
    this.passHead();
  }

  checkOpen() {
    if (this.isOver()) throw this.gone();
  }

  gone() {
    return ruby.error(["Rondo", "ClientGone"], "the client has left");
  }

  // Node cannot make the application wait, so a client that reads too slowly for it loses its connection.
  write(part) {
    let wire = toWire(part);
    const size = Buffer.byteLength(wire);
    if (size > this.left) wire = Buffer.from(wire).subarray(0, this.left);
    this.left -= Math.min(size, this.left);
    if (wire.length === 0) return size;
    if (this.req.method !== "HEAD") this.res.write(this.head.isBytes ? Buffer.from(wire) : wire);
    if (this.pending() > limits.maxResponseBytes) this.res.destroy();
    return size;
  }

  pending() {
    return this.res.writableLength;
  }

  // The end of the body: a length that was promised and is not there ends the connection.
  finish() {
    if (this.finished) return;
    this.finished = true;
    if (this.left !== Infinity && this.left > 0) {
      this.res.socket?.destroySoon();
      return;
    }
    this.res.end();
    if (this.res.writableFinished || this.left !== Infinity) this.end();
  }

  isFinished() {
    return this.finished;
  }

  isOver() {
    return this.finished || this.res.destroyed || this.res.socket?.destroyed === true;
  }

  // An exception before the answer has begun is answered; later only the connection can say it.
  fail(exception) {
    if (exception.$$class !== ruby.constant("Rondo", "ClientGone")) log.reportRequest(this.env, exception);
    this.error = exception;
    if (this.res.headersSent || this.isOver()) {
      this.res.destroy();
    } else {
      refuseRequest(this.res, 500, "Internal Server Error");
    }
    this.end();
  }

  closeBody() {
    if (this.closed) return;
    this.closed = true;
    const { body } = this;
    if (body === null || Array.isArray(body) || !ruby.has(body, "close")) return;
    try {
      body.$close();
    } catch (exception) {
      log.reportRequest(this.env, exception);
    }
  }

  // After the answer, in any case.
  end() {
    if (this.over) return;
    this.over = true;
    this.closeBody();
    this.input.closed = true;
    if (this.held > 0) release(this.input, this.held);
    const callables = this.env.get("rack.response_finished");
    if (Array.isArray(callables) && callables.length > 0) this.callFinished(callables);
  }

  callFinished(callables) {
    const given = [this.env, this.status, this.headers, this.error || ruby.nil];
    for (const callable of [...callables].reverse()) {
      try {
        callable.$call(...given);
      } catch (exception) {
        log.reportRequest(this.env, exception);
      }
    }
  }
}

function statusOf(value) {
  const status = typeof value === "number" ? value : Number(ruby.has(value, "to_i") ? value.$to_i() : NaN);
  if (!Number.isInteger(status) || status < 200 || status > 999) {
    throw refuse(`the status is not from 200 to 999: ${value.$inspect()}`);
  }
  return status;
}

function checkedPart(part) {
  if (!ruby.isString(part)) throw refuse(`a part of the body is not a String: ${part.$inspect()}`);
  return part;
}

// Several parts as one: text stays text.
function join(parts) {
  const wires = parts.map((part) => toWire(checkedPart(part)));
  if (wires.every((wire) => typeof wire === "string")) return wires.join("");
  return Buffer.concat(wires.map((wire) => Buffer.from(wire)));
}

function lengthOf(parts) {
  return parts.reduce((sum, part) => sum + Buffer.byteLength(toWire(checkedPart(part))), 0);
}

// An answer of the server itself.
function refuseRequest(res, status, text, close = false) {
  const body = `${text}\n`;
  const isLast = close || !res.shouldKeepAlive;
  const connection = isLast ? "connection: close\r\n" : "";
  const lines = `${PLAIN_TEXT}content-length: ${Buffer.byteLength(body)}\r\n${connection}date: ${dateNow()}\r\n`;
  writeHead(res, status, lines, false, isLast);
  res.end(body);
}

module.exports = { Response, refuseRequest };
