// A stream of Server-Sent Events. It ends with its connection, without chunks, so an event has the same bytes for every
// client.
// SPDX-License-Identifier: MIT

"use strict";

const { isUtf8 } = require("node:buffer");
const limits = require("./limits");
const ruby = require("./ruby");
const { Endpoint } = require("./endpoint");
const { dateNow, readHead, writeHead } = require("./head");

// Fields of an ordinary answer that a stream does not have.
const DROPPED = new Set(["content-length", "content-encoding", "content-type", "connection", "upgrade"]);
const COMMENT = ":\n\n";

// The lines of an event; every kind of line end arrives as LF.
function eventOf(fields, data) {
  if (data === null) return `${fields}\n`;
  return `${fields}data: ${data.replace(/\r\n|\r|\n/g, "\ndata: ")}\n\n`;
}

class EventStream extends Endpoint {
  // @param isBytes whether the head has to be written with bytes
  constructor(response, handler, isBytes) {
    super("sse", response.env, handler, response.req.socket);
    this.isBytes = isBytes;
    this.res = response.res;
    this.res.on("close", () => this.ended(1006, ""));
    this.setTimeout(limits.pingInterval);
    this.opened();
  }

  // A write that has failed ends the socket in the next turn. Until then it throws away what it is given, and no byte waits.
  isOpen() {
    return !this.ending && !this.res.destroyed && this.socket.writable;
  }

  pending() {
    return this.res.destroyed ? -1 : this.res.writableLength;
  }

  write(data) {
    return this.event(data, "");
  }

  event(data, fields) {
    const content = data === null ? null : asText(data);
    if (!this.isOpen() || !this.hasRoom()) return false;
    this.put(eventOf(fields, content));
    return true;
  }

  // A published message that is not text does not reach a stream. The event is made once for all streams.
  deliver(message) {
    if (message.isBinary || !this.isOpen() || !this.hasRoom()) return;
    message.event ??= Buffer.from(eventOf(message.id === 0 ? "" : `id: ${message.id}\n`, message.text));
    this.put(message.event);
  }

  put(event) {
    const bytes = this.isBytes ? Buffer.from(event) : event;
    this.lastWrite = Date.now();
    if (this.drains) {
      this.res.write(bytes, () => this.drained());
    } else {
      this.res.write(bytes);
    }
  }

  close(code, reasonText) {
    if (this.ending) return;
    this.ending = true;
    this.noteEnd(code, reasonText);
    this.res.end();
  }

  abort(code) {
    this.noteEnd(code, "");
    this.res.destroy();
  }

  // After this silence a comment.
  look() {
    if (this.isOpen() && Date.now() - (this.lastWrite || 0) >= this.timeout) this.put(COMMENT);
  }
}

function asText(data) {
  if (typeof data === "string") return data;
  if (isUtf8(data)) return data.toString("utf8");
  throw ruby.error(["ArgumentError"], "an event stream carries only text: the message must be UTF-8");
}

// Begins the answer of an event stream.
function openStream(response, result, handler) {
  const { res } = response;
  let head;
  try {
    [response.status, response.headers, response.body] = [200, result[1], result[2]];
    head = readHead(result[1]);
    writeHead(res, 200, streamFields(head), false, true);
  } catch (exception) {
    response.fail(exception);
    return;
  }
  if (!head.isBytes) res.flushHeaders();
  response.end();
  new EventStream(response, handler, head.isBytes);
}

function streamFields(head) {
  const fields = new Map([["cache-control", "no-cache"], ["x-accel-buffering", "no"], ["connection", "close"]]);
  if (!head.dated) fields.set("date", dateNow());
  const lines = head.text.split("\r\n").filter((line) => !DROPPED.has(nameOf(line)));
  lines.forEach((line) => fields.delete(nameOf(line)));
  lines[lines.length - 1] = "content-type: text/event-stream";
  fields.forEach((value, name) => lines.push(`${name}: ${value}`));
  return `${lines.join("\r\n")}\r\n`;
}

function nameOf(line) {
  return line.slice(0, line.indexOf(":")).toLowerCase();
}

module.exports = { openStream };
