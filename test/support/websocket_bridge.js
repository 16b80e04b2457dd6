// A client of HTTP/2 that is not ours, behind a door for clients of HTTP/1.1: each WebSocket that they ask for is a stream
// (RFC 8441) of one connection to the server. Bytes go through as they come, and so do the ends of both directions.
//
//   node websocket_bridge.js http://127.0.0.1:9292     prints its own port
// SPDX-License-Identifier: MIT

const http = require("http"), http2 = require("http2"), net = require("net");
const OWN = ["host", "connection", "upgrade", "sec-websocket-key"]; // of HTTP/1.1
let session, ready;

// A session that may be asked for a WebSocket, which the server's settings say.
const connect = () => {
  if (session && !session.closed && !session.destroyed) return ready;
  session = http2.connect(process.argv[2], { maxSessionMemory: 1000, settings: { initialWindowSize: 1 << 20 } });
  session.on("error", () => {});
  session.on("connect", () => session.setLocalWindowSize(1 << 26));
  const own = session;
  return ready = new Promise((done) => own.once("remoteSettings", () => done(own)));
};

const requestOf = (head) => {
  const [line, ...lines] = head.split("\r\n");
  const fields = { ":method": "CONNECT", ":protocol": "websocket", ":scheme": "http", ":path": line.split(" ")[1] };
  lines.forEach((field) => {
    const [, name, value] = field.match(/^(.*?): (.*)$/);
    const key = name.toLowerCase();
    if (key === "host") fields[":authority"] = value;
    if (!OWN.includes(key)) fields[key] = [...(fields[key] ?? []), value];
  });
  return fields;
};

const headOf = (fields) => {
  const status = fields[":status"] === 200 ? 101 : fields[":status"];
  const lines = Object.entries(fields).filter(([name]) => !name.startsWith(":")).flatMap(([name, value]) =>
    [].concat(value).map((one) => `${name}: ${one}\r\n`));
  return `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${lines.join("")}\r\n`;
};

const join = (socket, stream) => {
  stream.on("response", (fields) => {
    socket.write(headOf(fields), "latin1");
    stream.pipe(socket); // ends it, too
  });
  stream.on("error", () => {});
  stream.on("close", () => {
    socket.end();
    // Who only writes would never learn of the end.
    socket.resume().on("data", () => socket.writableLength > 0 && socket.resetAndDestroy());
  });
  socket.on("close", () => stream.destroyed || stream.close(http2.constants.NGHTTP2_CANCEL));
  socket.on("error", () => {});
  socket.pipe(stream);
};

net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
  let head = Buffer.alloc(0);
  const onData = async (part) => {
    head = Buffer.concat([head, part]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    socket.off("data", onData);
    socket.pause();
    const rest = head.subarray(end + 4);
    const stream = (await connect()).request(requestOf(head.toString("latin1", 0, end)), { endStream: false });
    if (rest.length > 0) stream.write(rest);
    join(socket, stream);
  };
  socket.on("data", onData);
  socket.on("error", () => {});
}).listen(0, "127.0.0.1", function () { console.log(this.address().port); });
