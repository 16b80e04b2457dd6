// fibers.ru for node. Usage: node fibers.js PORT
// SPDX-License-Identifier: MIT
"use strict";

const http = require("node:http");

let asleep = 0;

function compute(seconds) {
  const ends = performance.now() + seconds * 1000;
  let rounds = 0;
  while (performance.now() < ends) rounds++;
  return String(rounds);
}

http.createServer((request, response) => {
  const say = (body) => {
    response.writeHead(200, { "content-type": "text/plain", "content-length": Buffer.byteLength(body) });
    response.end(body);
  };
  const [path, query] = request.url.split("?");
  if (path === "/wait") {
    setTimeout(say, 5, "Hello, World!");
  } else if (path === "/asleep") {
    asleep++;
    setTimeout(say, 600000, "awake");
  } else if (path === "/count") {
    say(String(asleep));
  } else if (path === "/compute") {
    say(compute(Number(query)));
  } else {
    say("Hello, World!");
  }
}).listen({ host: "127.0.0.1", port: Number(process.argv[2]), backlog: 4096 });
