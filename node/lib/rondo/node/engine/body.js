// Collects the body of a request before the application is called. It is in memory: its limits are max_body_bytes for
// one request, and totalBodyBytes for all of them together.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");

let held = 0;

// The status of a refusal by the length that the client names, or 0.
function refusal(facts) {
  const length = facts.length || 0;
  if (length > limits.maxBodyBytes) return 413;
  return held + length > limits.totalBodyBytes ? 507 : 0;
}

// Calls `done(0, bytes)` with the whole body, or `done(status)` for a refusal. When the client leaves before the end,
// nothing is called.
function collect(req, done) {
  const parts = [];
  let size = 0;
  let timer = null;
  const release = () => {
    held -= size;
    size = 0;
  };
  const finish = (status, bytes) => {
    clearTimeout(timer);
    req.removeAllListeners("data");
    req.removeAllListeners("end");
    release();
    done(status, bytes);
  };
  const watch = () => {
    clearTimeout(timer);
    timer = setTimeout(() => finish(408), limits.bodyTimeout);
  };
  req.on("data", (part) => {
    parts.push(part);
    size += part.length;
    held += part.length;
    if (size > limits.maxBodyBytes) return finish(413);
    if (held > limits.totalBodyBytes) return finish(507);
    return watch();
  });
  req.on("end", () => finish(0, parts.length === 1 ? parts[0] : Buffer.concat(parts)));
  req.on("close", () => {
    clearTimeout(timer);
    release();
  });
  watch();
}

module.exports = { collect, refusal };
