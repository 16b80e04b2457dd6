// The file of `-P`. It names the server that listens, and only that server removes it.
// SPDX-License-Identifier: MIT

"use strict";

const fs = require("node:fs");

const own = `${process.pid}\n`;

// Returns null, or what went wrong.
function write(path) {
  try {
    fs.writeFileSync(path, own);
    return null;
  } catch (error) {
    return error.message;
  }
}

function remove(path) {
  try {
    if (fs.readFileSync(path, "utf8") === own) fs.rmSync(path);
  } catch {
    // It has gone already.
  }
}

module.exports = { remove, write };
