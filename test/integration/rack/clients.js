// SPDX-License-Identifier: MIT
//
// What node's own clients make of the server: fetch (undici) and http.Agent with keep-alive. Run by
// clients_test.rb with the address of clients.ru; prints one line of JSON.
"use strict";

const crypto = require("crypto");
const http = require("http");
const base = process.argv[2];
const answers = { reused: 0 };
const sockets = new Set();

async function withFetch() {
  const hello = await fetch(base + "/hello");
  answers.hello = [hello.status, await hello.text()];
  answers.parts = (await (await fetch(base + "/parts")).text()).split("\n").length;
  answers.stream = (await (await fetch(base + "/stream")).text()).split("\n").length;
  answers.large = (await (await fetch(base + "/large")).arrayBuffer()).byteLength;
  answers.empty = (await fetch(base + "/empty")).status;
  answers.redirected = await (await fetch(base + "/redirect")).text();
  answers.head = (await fetch(base + "/hello", { method: "HEAD" })).status;
  const cookies = (await fetch(base + "/cookies")).headers;
  answers.cookies = cookies.get("set-cookie");
  const body = crypto.randomBytes(300000);
  const sum = crypto.createHash("sha256").update(body).digest("hex");
  const posted = await fetch(base + "/digest", { method: "POST", body });
  answers.posted = (await posted.text()) === `300000 ${sum}`;
  async function* pieces() {
    for (let at = 0; at < body.length; at += 7001) yield body.subarray(at, at + 7001);
  }
  const chunked = await fetch(base + "/digest", { method: "POST", body: pieces(), duplex: "half" });
  answers.chunked = (await chunked.text()) === `300000 ${sum}`;
  const many = await Promise.all(
    Array.from({ length: 200 }, (_, n) => fetch(`${base}/env?${n}`).then((r) => r.text())));
  answers.many = many.filter((text, n) => text === `["GET", "/env", "${n}", nil]`).length;
}

function ask(agent, path) {
  return new Promise((resolve, reject) => {
    const request = http.get(base + path, { agent }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part) => (text += part));
      response.on("end", () => resolve([request.reusedSocket, text]));
    });
    request.on("socket", (socket) => sockets.add(socket));
    request.on("error", reject);
  });
}

async function withAgent() {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
  for (const path of ["/hello", "/parts", "/stream", "/empty", "/hello"]) {
    const [reused, text] = await ask(agent, path);
    if (reused) answers.reused++;
    answers["agent" + path] = text.length;
  }
  const all = await Promise.all(Array.from({ length: 100 }, () => ask(agent, "/hello")));
  answers.agents = all.filter(([, text]) => text === "Hello, World!\n").length;
  answers.sockets = sockets.size;
  agent.destroy();
}

withFetch().then(withAgent).then(() => {
  console.log(JSON.stringify(answers));
  process.exit(0);
}).catch((error) => {
  console.error(error);
  process.exit(1);
});
