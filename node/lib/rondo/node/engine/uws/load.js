// Loads uWebSockets.js, which is a library of C++ for one system, one processor and one version of Node.
// SPDX-License-Identifier: MIT

"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { createRequire } = require("node:module");
const limits = require("../limits");

// Where a build has it that came with it.
const BESIDE = path.join("uws", "uws.js");

// @param file path of its uws.js, or undefined for the one beside the build
// @return { uws }, or { line } with what is wrong
function load(file) {
  const found = file || path.join(path.dirname(require.main.filename), BESIDE);
  if (!fs.existsSync(found)) return { line: `there is no ${found}` };
  process.env.UWS_HTTP_MAX_HEADERS_SIZE ||= String(limits.maxHeadBytes); // it reads this once, here
  try {
    return { uws: createRequire(found)(found) };
  } catch (error) {
    return { line: reasonOf(error) };
  }
}

// Its own message is about versions in general; the cause follows it.
function reasonOf(error) {
  const lines = String(error.message).split("\n").filter((line) => line !== "");
  return lines[lines.length - 1].replace(/^Error: /, "");
}

module.exports = { load };
