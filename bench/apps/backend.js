// backend.ru for node. Usage: BACKEND=PORT node backend.js PORT
// SPDX-License-Identifier: MIT
"use strict";

const http = require("node:http");

const agent = new http.Agent({ keepAlive: true });
const backend = { host: "127.0.0.1", port: Number(process.env.BACKEND), path: "/", agent };

http.createServer((request, response) => {
  http.get(backend, (answer) => {
    const parts = [];
    answer.on("data", (part) => parts.push(part));
    answer.on("end", () => {
      const body = Buffer.concat(parts);
      response.writeHead(200, { "content-type": "text/plain", "content-length": body.length });
      response.end(body);
    });
  }).on("error", () => response.writeHead(502).end());
}).listen({ host: "127.0.0.1", port: Number(process.argv[2]), backlog: 4096 });
