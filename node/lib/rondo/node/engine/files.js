// Bodies with `to_path`: a regular file, whole or the one range that the client asks for.
// SPDX-License-Identifier: MIT

"use strict";

const fs = require("node:fs");

// Returns { descriptor, size }, or null for what is not a regular file that can be opened.
function open(path) {
  let descriptor = null;
  try {
    descriptor = fs.openSync(path, "r");
    const { size } = fs.fstatSync(descriptor);
    if (fs.fstatSync(descriptor).isFile()) return { descriptor, size };
  } catch {
    // It is enumerated like any other body.
  }
  if (descriptor !== null) fs.closeSync(descriptor);
  return null;
}

function rangeOf(text, size) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(text);
  if (!match || (match[1] === "" && match[2] === "")) return null;
  if (match[1] === "") {
    const length = Math.min(Number(match[2]), size);
    return { start: size - length, length };
  }
  const start = Number(match[1]);
  const last = match[2] === "" ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (match[2] !== "" && Number(match[2]) < start) return null;
  return { start, length: Math.max(last - start + 1, 0) };
}

// What is sent of the file, and the fields that say so (RFC 9110, section 14).
function choose(req, status, file) {
  const whole = { status, start: 0, length: file.size, fields: [["accept-ranges", "bytes"]] };
  const asked = req.headers.range;
  if (status !== 200) return { ...whole, fields: [] };
  if (req.method !== "GET" || asked === undefined || req.headers["if-range"] !== undefined) return whole;
  const range = rangeOf(asked, file.size);
  if (range === null) return whole;
  const size = `bytes */${file.size}`;
  if (range.length <= 0) {
    return { ...whole, status: 416, length: 0, fields: [...whole.fields, ["content-range", size]] };
  }
  const last = range.start + range.length - 1;
  return { status: 206, ...range,
           fields: [["accept-ranges", "bytes"], ["content-range", `bytes ${range.start}-${last}/${file.size}`]] };
}

module.exports = { choose, open };
