// The answer of hello.ru by Node's own server, as anybody would write it. Its arguments are the port and the number of
// processes; without that, it is one.
// SPDX-License-Identifier: MIT

"use strict";

const cluster = require("node:cluster");

const [port, count] = process.argv.slice(2).map(Number);

if (count > 1 && cluster.isPrimary) {
  for (let number = 0; number < count; number += 1) cluster.fork();
} else {
  require("node:http").createServer((request, response) => {
    response.writeHead(200, { "content-type": "text/plain", "content-length": "13" });
    response.end("Hello, World!");
  }).listen(port, "127.0.0.1");
}
