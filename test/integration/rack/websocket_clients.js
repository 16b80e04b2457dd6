// What the client `ws` for node makes of the server. Run by websocket_clients_test.rb; prints what it
// saw as JSON, the same as websocket_clients.py does.
// SPDX-License-Identifier: MIT
"use strict";

const WebSocket = require("ws");
const url = process.argv[2].replace("http", "ws");
const seen = {};

// A queue of everything that happens to a WebSocket.
function connect(path, protocols) {
  const socket = new WebSocket(url + path, protocols);
  const events = [], waiting = [];
  const put = (event) => { waiting.length ? waiting.shift()(event) : events.push(event); };
  socket.next = () => new Promise((take) => (events.length ? take(events.shift()) : waiting.push(take)));
  socket.on("open", () => put(["open"]));
  socket.on("message", (data, isBinary) => put(isBinary ? data.toString("hex") : data.toString()));
  socket.on("pong", (data) => put(data.toString()));
  socket.on("unexpected-response", (_, response) => { put(response.statusCode); response.destroy(); });
  socket.on("close", (code, reason) => put([code, reason.toString()]));
  socket.on("error", () => {});
  return socket;
}

async function opened(path = "/", protocols = []) {
  const socket = connect(path, protocols);
  await socket.next();
  return socket;
}

async function told(message) {
  const socket = await opened();
  socket.send(message);
  return socket.next();
}

async function main() {
  let socket = await opened("/", ["xml", "chat"]);
  seen.protocol = socket.protocol;
  seen.echo = [];
  const large = "large\u20ac".repeat(20000);
  for (const message of ["h\u00e4llo", Buffer.from([0, 255, 128]), "", large]) {
    socket.send(message);
    const answer = await socket.next();
    seen.echo.push(answer === large ? "large" : answer);
  }
  for (const [index, part] of ["one ", "two ", "three"].entries()) socket.send(part, { fin: index === 2 });
  seen.fragments = await socket.next();
  socket.ping("are you there");
  seen.pong = await socket.next();
  socket.close(4001, "bye");
  seen.closed = await socket.next();
  seen.closes = await told("close 3000 enough");
  seen.raises = await told("raise");
  seen.limit = await told("x".repeat(300000));
  seen.refused = await connect("/refused").next();
  console.log(JSON.stringify(seen));
}

main();
