// The log: what happens to stdout, what goes wrong to stderr, or both to the file of `-l`. Lines look like those of the
// server on MRI: later lines are indented, and control characters of clients are shown, not sent to a terminal.
// SPDX-License-Identifier: MIT

"use strict";

const fs = require("node:fs");

// eslint-disable-next-line no-control-regex
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
const MESSAGE_MAX = 16384;
let file = null;

// Lines go to the end of this file from now on.
function open(path) {
  file = fs.openSync(path, "a");
}

function put(descriptor, line) {
  try {
    fs.writeSync(file === null ? descriptor : file, `${line}\n`);
  } catch {
    // Nowhere left to say it.
  }
}

function escape(text) {
  return text.replace(CONTROL, (char) => {
    const code = char.charCodeAt(0).toString(16).toUpperCase();
    return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });
}

const info = (line) => put(1, line);
const error = (line) => put(2, line);

const FRAME = /^\s+at (?:(.*) \()?(.*?):(\d+):\d+\)?$/;
// Frames of Opal and of this server say nothing to the author of an application.
const FOREIGN = /^node:|\/(?:application|server|main)\.js$|\/rondo\/node\/opal\//;
const MOST_FRAMES = 20;

// One frame, as Ruby writes it.
function frame(line) {
  const [, name = "", file, number] = FRAME.exec(line) || [];
  if (file === undefined || FOREIGN.test(file)) return null;
  const method = name.replace(/ \[as .*$/, "").split(".").at(-1).replace(/^\$+(?=[a-z_])/i, "");
  return `    ${file}:${number}${/^[a-z_]\w*$/i.test(method) ? `:in '${method}'` : ""}`;
}

function backtrace(exception) {
  return String(exception.stack || "").split("\n").map(frame).filter((line) => line !== null).slice(0, MOST_FRAMES);
}

// What an application has defined anew may fail.
function ask(object, method) {
  try {
    return String(object[method]());
  } catch {
    return "?";
  }
}

function describe(exception) {
  const name = exception.$$class ? ask(exception.$$class, "$name") : exception.name || "Error";
  const message = String(exception.message).slice(0, MESSAGE_MAX);
  return escape(`${name}: ${message}`).replaceAll("\n", "\n    | ");
}

// One exception of the application.
function report(where, exception) {
  const thrown = exception instanceof Error ? exception : new Error(String(exception));
  error([`${escape(where)}: ${describe(thrown)}`, ...backtrace(thrown)].join("\n"));
}

// For a request.
function reportRequest(env, exception) {
  report(`${env.get("REQUEST_METHOD")} ${env.get("PATH_INFO")}`, exception);
}

// For a callback of `rack.upgrade`.
function reportCallback(handler, name, exception) {
  const module = handler.$$is_a_module;
  const owner = ask(module ? handler : handler.$$class, "$inspect");
  report(`${owner}${module ? "." : "#"}${name}`, exception);
}

module.exports = { describe, error, escape, info, open, report, reportCallback, reportRequest };
