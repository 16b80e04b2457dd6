// SPDX-License-Identifier: MIT
// Stands between clients of HTTP/1.1 and a server that is to be tested with HTTP/2: each connection of a client becomes a
// session, each of its requests a stream. A process with the lines of xor_proxy.rb: it reads addresses of servers, and
// prints for each where it listens. With the argument "tls" the TCP ports of the servers speak TLS.
//
// What a client of HTTP/1.1 says to the server in the framing of its connection has no counterpart on a stream. Tests of
// that are in test/support/http2_exclusions.tsv.

const crypto = require("crypto");
const http = require("http");
const http2 = require("http2");
const net = require("net");
const readline = require("readline");
const tls = require("tls");

const SECURE = process.argv[2] === "tls";
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const BARE = new Set(["connection", "host", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"]);
const NOTHING = Buffer.alloc(0);
// A client that takes what comes, as a socket does, and as many fields as there are.
const LARGE = { maxHeaderListPairs: 5000, maxSessionMemory: 1000, settings: { initialWindowSize: 1 << 20 } };

// One connection of a client, and the session that belongs to it.
class Pair {
  constructor(client, url) {
    this.client = client;
    this.bytes = NOTHING;
    this.state = "head"; // head, length, size, chunk, line, trailers: what is read of the client; none, raw: after an upgrade
    this.session = http2.connect("http://localhost", { createConnection: () => connect(url), ...LARGE });
    this.session.on("connect", () => this.session.setLocalWindowSize(1 << 26));
    this.session.on("error", () => {});
    this.session.on("goaway", () => this.leaving = true);
    this.session.on("remoteSettings", () => this.settings = true);
    this.session.on("close", () => this.stream ? undefined : this.end());
    client.on("data", (some) => this.take(some));
    client.on("end", () => this.ended());
    client.on("error", () => {});
    client.on("close", () => this.left());
  }

  end() {
    if (!this.client.destroyed) this.client.end();
    this.session.destroyed || this.session.close();
  }

  // Only TCP has a reset.
  break() {
    this.client.remoteFamily ? this.client.resetAndDestroy() : this.client.destroy();
    this.session.destroy();
  }

  left() {
    this.gone = true;
    if (this.stream && !this.stream.destroyed) this.stream.close(http2.constants.NGHTTP2_CANCEL);
    this.session.destroyed || this.session.close();
  }

  // No more comes from the client, but what it has asked for is still answered.
  ended() {
    this.over = true;
    if (this.state === "raw") return this.stream.end();
    if (this.stream && this.uploading) return this.left();
    if (!this.stream) this.end();
  }

  take(some) {
    if (this.state === "raw") return this.give(some);
    this.bytes = this.bytes.length ? Buffer.concat([this.bytes, some]) : some;
    try {
      this.step();
    } catch (error) {
      this.refuse();
    }
  }

  step() {
    while (this[this.state]());
  }

  refuse() {
    this.state = "none";
    if (this.stream) return this.break();
    this.client.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
  }

  none() {
    return false;
  }

  raw() {
    const some = this.bytes;
    this.bytes = NOTHING;
    if (some.length) this.give(some);
    return false;
  }

  // Bytes up to the mark, without it.
  upto(mark) {
    const at = this.bytes.indexOf(mark);
    if (at < 0) return undefined;
    const some = this.bytes.toString("latin1", 0, at);
    this.bytes = this.bytes.subarray(at + mark.length);
    return some;
  }

  // A part of the body, as far as it is there.
  part() {
    const some = this.bytes.subarray(0, this.left_over);
    this.bytes = this.bytes.subarray(some.length);
    this.left_over -= some.length;
    if (some.length) this.give(some);
    return this.left_over === 0;
  }

  give(some) {
    if (this.stream.destroyed || this.stream.writableEnded) return;
    if (this.stream.write(some)) return;
    this.client.pause();
    this.stream.once("drain", () => this.client.resume());
  }

  head() {
    if (this.stream || this.gone) return false; // one after the other, as a server of HTTP/1.1 does it
    while (this.bytes[0] === 13 || this.bytes[0] === 10) this.bytes = this.bytes.subarray(1);
    const text = this.upto("\r\n\r\n");
    if (text === undefined) return false;
    this.ask(text.split("\r\n"));
    return true;
  }

  length() {
    return this.part() && this.finish();
  }

  size() {
    const line = this.upto("\r\n");
    if (line === undefined) return false;
    if (!/^[0-9a-fA-F]+(;.*)?$/.test(line)) throw new Error("size");
    this.left_over = parseInt(line, 16);
    this.state = this.left_over ? "chunk" : "trailers";
    return true;
  }

  chunk() {
    if (!this.part()) return false;
    this.state = "line";
    return true;
  }

  line() {
    if (this.bytes.length < 2) return false;
    if (this.upto("\r\n") !== "") throw new Error("chunk");
    this.state = "size";
    return true;
  }

  trailers() {
    const line = this.upto("\r\n");
    if (line === undefined) return false;
    if (line === "") return this.finish();
    const [name, value] = field(line);
    this.extra[name] = value;
    return true;
  }

  // The request is complete: the next one waits for its answer.
  finish() {
    this.uploading = false;
    this.state = "head";
    if (!this.stream.destroyed) this.stream.end();
    return true;
  }

  ask(lines) {
    const [, method, target, minor] = /^(\S+) (\S+) HTTP\/1\.([01])$/.exec(lines[0]) || [];
    if (!method) throw new Error("line");
    const fields = lines.slice(1).map(field);
    const all = (name) => fields.filter((one) => one[0] === name).map((one) => one[1]).join(", ");
    const [, absolute, path] = /^https?:\/\/([^/?]*)(.*)$/i.exec(target) || [undefined, undefined, target];
    const connection = all("connection").toLowerCase();
    const old = minor === "0";
    this.request = { method, old, key: all("sec-websocket-key") };
    this.request.last = old ? !connection.includes("keep-alive") : /\bclose\b/.test(connection);
    this.extra = {};

    const head = { ":method": method, ":scheme": SECURE ? "https" : "http", ":path": path || "/" };
    const host = absolute || all("host");
    if (host) head[":authority"] = host;
    for (const [name, value] of fields) if (!BARE.has(name)) head[name] = [...head[name] || [], value];
    for (const name in head) if (Array.isArray(head[name]) && head[name].length === 1) head[name] = head[name][0];

    const socket = method === "GET" && /\bupgrade\b/.test(connection) && all("upgrade").toLowerCase() === "websocket";
    if (socket) {
      Object.assign(head, { ":method": "CONNECT", ":protocol": "websocket" });
      delete head["sec-websocket-key"];
      this.state = "none";
      return this.settled(() => this.open(head, socket));
    }
    const chunked = /\bchunked$/i.test(all("transfer-encoding"));
    this.left_over = chunked ? 0 : Number(all("content-length") || 0);
    if (Number.isNaN(this.left_over)) throw new Error("length");
    this.uploading = chunked || this.left_over > 0;
    this.open(head, false);
    if (this.uploading) this.state = chunked ? "size" : "length";
  }

  // Extended CONNECT must wait until the server has said that it knows it.
  settled(after) {
    if (this.settings) return after();
    this.session.once("remoteSettings", after);
  }

  open(head, socket) {
    if (this.session.destroyed || this.session.closed) return this.end();
    const bare = !socket && !this.uploading; // its head is the end: no body could follow, as in HTTP/1.1
    const stream = this.stream = this.session.request(head, { endStream: bare, waitForTrailers: !bare });
    stream.on("error", () => {});
    stream.on("continue", () => this.request.old || this.say(100, [])); // HTTP/1.0 has no interim answers
    stream.on("headers", (fields, flags, raw) => fields[":status"] === 100 || this.say(fields[":status"], pairs(raw)));
    stream.on("response", (fields, flags, raw) => {
      if (socket && fields[":status"] === 200) this.upgrade(pairs(raw));
      else this.answer(fields[":status"], pairs(raw));
    });
    stream.on("trailers", (fields, flags, raw) => this.answered_trailers = pairs(raw));
    stream.on("wantTrailers", () => stream.sendTrailers(this.extra));
    stream.on("close", () => this.closed(stream));
  }

  say(status, fields) {
    const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    if (!this.client.destroyed) this.client.write(`HTTP/1.1 ${status} ${http.STATUS_CODES[status] || "Status"}\r\n${lines}\r\n`, "latin1");
  }

  answer(status, fields) {
    const { method, old } = this.request;
    const known = fields.some(([name]) => name === "content-length");
    const bare = method === "HEAD" || status === 204 || status === 304;
    const events = fields.some(([name, value]) => name === "content-type" && value === "text/event-stream");
    this.chunked = !known && !bare && !old && !events;
    if (this.state === "none") this.state = "head"; // a WebSocket that was refused
    if (this.uploading || this.leaving || (!known && !bare && !this.chunked)) this.request.last = true;
    if (this.chunked) fields.push(["transfer-encoding", "chunked"]);
    if (this.request.last) fields.push(["connection", "close"]);
    else if (old) fields.push(["connection", "keep-alive"]);
    this.say(status, fields);
    this.stream.on("data", (some) => this.pass(this.chunked ? chunk(some) : some));
    this.stream.on("end", () => this.answered());
  }

  pass(some) {
    if (this.client.destroyed || this.client.write(some)) return;
    this.stream.pause();
    this.client.once("drain", () => this.stream && this.stream.resume());
  }

  answered() {
    if (this.stream.rstCode) return;
    this.whole = true;
    const trailers = (this.answered_trailers || []).map(([name, value]) => `${name}: ${value}\r\n`).join("");
    if (this.chunked && !this.client.destroyed) this.client.write(`0\r\n${trailers}\r\n`, "latin1");
  }

  upgrade(fields) {
    const accept = crypto.createHash("sha1").update(this.request.key + GUID).digest("base64");
    const others = fields.filter(([name]) => name !== "sec-websocket-accept");
    this.say(101, [["upgrade", "websocket"], ["connection", "Upgrade"], ["sec-websocket-accept", accept], ...others]);
    this.stream.on("data", (some) => this.pass(some));
    this.stream.on("end", () => this.client.end());
    this.state = "raw";
    this.step();
  }

  // Whether the answer was whole decides if the connection goes on.
  closed(stream) {
    if (this.gone) return;
    const whole = this.whole && !this.uploading;
    this.client.resume(); // an upload that has ended does not drain
    if (this.state === "raw" && this.client.writableLength > 0) return this.break(); // it does not read
    if (this.state === "raw") this.state = "none";
    this.stream = this.whole = this.answered_trailers = undefined;
    if (!whole || this.request.last || (this.over && !this.bytes.length)) return this.end();
    if (this.session.destroyed || this.session.closed) return this.end();
    this.take(NOTHING);
    if (this.over && !this.stream) this.end();
  }
}

function chunk(some) {
  return Buffer.concat([Buffer.from(`${some.length.toString(16)}\r\n`), some, Buffer.from("\r\n")]);
}

function field(line) {
  const [, name, value] = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*?)[ \t]*$/.exec(line) || [];
  if (!name) throw new Error("field");
  return [name.toLowerCase(), value];
}

function pairs(raw) {
  const list = [];
  for (let i = 0; i < raw.length; i += 2) if (raw[i][0] !== ":") list.push([raw[i], raw[i + 1]]);
  return list;
}

function connect(url) {
  if (url.startsWith("unix:")) return net.connect(url.slice("unix://".length));
  const place = { port: Number(/\d+$/.exec(url)[0]), host: "127.0.0.1" };
  if (!SECURE) return net.connect({ ...place, noDelay: true });
  return tls.connect({ ...place, ALPNProtocols: ["h2"], rejectUnauthorized: false });
}

function listen(url) {
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => new Pair(client, url));
  const isUnix = url.startsWith("unix:");
  const place = isUnix ? { path: `${url.slice("unix://".length)}.h2` } : { port: 0, host: "127.0.0.1" };
  return new Promise((done) => server.listen({ ...place, backlog: 1024 }, () => {
    done(isUnix ? `${url}.h2` : `http://127.0.0.1:${server.address().port}`);
  }));
}

// A mistake of the proxy must not fail the tests that follow.
process.on("uncaughtException", (error) => process.stderr.write(`${error.stack}\n`));

let last = Promise.resolve();
const lines = readline.createInterface({ input: process.stdin });
lines.on("line", (url) => last = last.then(() => listen(url)).then((front) => process.stdout.write(`${front}\n`)));
lines.on("close", () => process.exit(0));
