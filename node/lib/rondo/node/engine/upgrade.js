// Which requests can be upgraded, and what the application's handler is used for.
// SPDX-License-Identifier: MIT

"use strict";

const log = require("./log");
const ruby = require("./ruby");

const KEY = /^[+/0-9A-Za-z]{22}==$/;
const warned = new Set();

function lists(header, word) {
  return header !== undefined && header.toLowerCase().split(",").some((part) => part.trim() === word);
}

// RFC 6455, section 4.2.1.
function isHandshake(req) {
  const { headers } = req;
  return req.method === "GET" && req.httpVersionMinor === 1 && lists(headers.upgrade, "websocket") &&
    lists(headers.connection, "upgrade") && headers["sec-websocket-version"] === "13" &&
    KEY.test(headers["sec-websocket-key"] || "") && headers["content-length"] === undefined &&
    headers["transfer-encoding"] === undefined;
}

function wantsEvents(req, accept) {
  return accept.includes("text/event-stream") && req.method === "GET" &&
    accept.toLowerCase().split(",").some((part) => part.split(";")[0].trim() === "text/event-stream");
}

// The value of `rack.upgrade?`.
function upgradeKind(req, facts) {
  if (facts.upgrade && isHandshake(req)) return "websocket";
  return facts.accept !== null && wantsEvents(req, facts.accept) ? "sse" : ruby.nil;
}

// A handler for a request that cannot be upgraded: one warning for each class.
function warnUnused(handler) {
  const name = handler.$$is_a_module ? handler.$inspect() : handler.$$class.$inspect();
  if (warned.has(name)) return;
  warned.add(name);
  log.error(`rack.upgrade was set to ${name} for a request that cannot be upgraded: it is ignored`);
}

// The application has set `rack.upgrade`. `openStream` and `response.openSocket` make the connection.
function takeHandler(response, result, handler, openStream) {
  const kind = response.env.get("rack.upgrade?");
  const status = Array.isArray(result) ? result[0] : NaN;
  if (kind === ruby.nil) {
    warnUnused(handler);
    return response.send(status < 100 ? [426, result[1], result[2]] : result);
  }
  if (!(status < 300)) return response.send(result);
  const open = kind === "sse" ? openStream : response.openSocket;
  return open(response, result, handler);
}

module.exports = { lists, takeHandler, upgradeKind };
