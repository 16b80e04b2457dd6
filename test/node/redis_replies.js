// The vectors of test/unit/pubsub/redis/replies_test.rb for the decoder of the engine on Node; run by redis_replies_test.rb.
// SPDX-License-Identifier: MIT

"use strict";

const assert = require("node:assert");
const { Replies } = require(process.argv[2]);

class Refusal extends Error {}

function read(parts, limit = 1 << 20) {
  const values = [];
  const take = (value) => values.push(shown(value));
  const replies = new Replies(limit, { onReply: take, onErrorReply: take }, Refusal);
  for (const part of parts) replies.write(Buffer.from(part, "latin1"));
  return values;
}

function shown(value) {
  if (Array.isArray(value)) return value.map(shown);
  if (value instanceof Refusal) return { refusal: value.message };
  return Buffer.isBuffer(value) ? value.toString("latin1") : value;
}

const STREAM = "+OK\r\n:42\r\n:-1\r\n$5\r\nhello\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n" +
  "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\na\r\n\r\n*2\r\n*2\r\n:1\r\n*1\r\n$-1\r\n+x\r\n";
const VALUES = ["OK", 42, -1, "hello", "", null, null, [], ["message", "c", "a\r\n"], [[1, [null]], "x"]];

assert.deepStrictEqual(read([STREAM]), VALUES);
for (let at = 1; at < STREAM.length; at += 1) {
  assert.deepStrictEqual(read([STREAM.slice(0, at), STREAM.slice(at)]), VALUES, `cut at ${at}`);
}
assert.deepStrictEqual(read([...STREAM]), VALUES);
assert.deepStrictEqual(read(["-NOPERM not\ryou\r\n+OK\r\n"]), [{ refusal: "NOPERM not you" }, "OK"]);
assert.deepStrictEqual(read(["$2\r\n\xc3\x28\r\n"]), ["\xc3\x28"]);

for (const bytes of ["HTTP/1.1 400 Bad Request\r\n", "$x\r\n", ":1_000\r\n", ":\r\n", "$-2\r\n", "*-2\r\n", "$3\r\nabcd\r\n",
                     "\r\n", ":12345678901234567890\r\n", "%1\r\n"]) {
  assert.throws(() => read([bytes]), /not the Redis protocol: /, JSON.stringify(bytes));
}

// Limits come before the bytes.
for (const bytes of ["$1001\r\n", "*300\r\n", `*2\r\n$600\r\n${"a".repeat(600)}\r\n$600\r\n`, "*1\r\n".repeat(9),
                     "$999999999999999\r\n", "*9999999999999999\r\n"]) {
  assert.throws(() => read([bytes], 1000), /a reply of more than|inside each other/, JSON.stringify(bytes));
}
assert.throws(() => read([`+${"a".repeat(70000)}`]), /a line of more than/);

// Of one reply, not of all.
const long = "a".repeat(900);
assert.deepStrictEqual(read([`$900\r\n${long}\r\n`.repeat(5)], 1000), [long, long, long, long, long]);

// What a handler raises is the end, too; and after a reset it begins anew.
const broken = new Replies(1000, { onReply: () => { throw new TypeError("none"); }, onErrorReply: () => {} }, Refusal);
assert.throws(() => broken.write(Buffer.from("+OK\r\n+OK\r\n")), /a reply that belongs to no command/);
broken.reset();
broken.write(Buffer.from("+O"));

// Broken streams end in values or in an error, and always end.
let state = 7;
const random = (most) => (state = (state * 1103515245 + 12345) % 2147483648) % most;
for (let round = 0; round < 2000; round += 1) {
  const bytes = [...STREAM];
  for (let count = 1 + random(4); count > 0; count -= 1) bytes[random(bytes.length)] = "+-:$*0123456789\r\nx"[random(18)];
  try {
    read([bytes.join("")], 1000);
  } catch (error) {
    assert.match(error.message, /not the Redis protocol/);
  }
}
console.log("all as on MRI");
