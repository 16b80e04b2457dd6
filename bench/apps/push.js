// push.ru for node and its `ws`. Usage: node push.js PORT
// SPDX-License-Identifier: MIT
"use strict";

const http = require("node:http");
const { WebSocketServer, WebSocket } = require("ws");

const rooms = { "/subscribe": new Set(), "/chat": new Set() };

function publish(room, message) {
  for (const client of room) {
    if (client.readyState === WebSocket.OPEN) client.send(message, { binary: false });
  }
}

function publishNumbered(order) {
  const [count, bytes, first] = order.toString().split(" ").map(Number);
  const padding = "x".repeat(bytes - 10);
  for (let number = first; number < first + count; number++) {
    publish(rooms["/subscribe"], String(number).padStart(10, "0") + padding);
  }
}

const server = http.createServer((request, response) => {
  response.writeHead(200, { "content-type": "text/plain", "content-length": "13" });
  response.end("Hello, World!");
});

new WebSocketServer({ server }).on("connection", (client, request) => {
  const path = request.url;
  const room = rooms[path];
  client.on("error", () => {});
  if (room) {
    room.add(client);
    client.on("close", () => room.delete(client));
  }
  if (path === "/echo") client.on("message", (data, binary) => client.send(data, { binary }));
  if (path === "/chat") client.on("message", (data) => publish(room, data));
  if (path === "/control") client.on("message", publishNumbered);
  if (!path.startsWith("/idle")) client.send("ready");
});

server.listen({ port: Number(process.argv[2]), host: "127.0.0.1", backlog: 1024 });
