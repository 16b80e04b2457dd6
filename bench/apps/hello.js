// The answer of hello.ru by Node's own server, as anybody would write it. Its argument is the port.
// SPDX-License-Identifier: MIT

"use strict";

require("node:http").createServer((request, response) => {
  response.writeHead(200, { "content-type": "text/plain", "content-length": "13" });
  response.end("Hello, World!");
}).listen(Number(process.argv[2]), "127.0.0.1");
