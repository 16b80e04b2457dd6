// Where a Redis is: the addresses and options that the engine on MRI knows. Messages have no password.
// SPDX-License-Identifier: MIT

"use strict";

const fs = require("node:fs");
const net = require("node:net");

const PORT = 6379;
const TCP = /^(rediss?):\/\/(?:([^@/?#\s]*)@)?(\[[\da-f:.]+\]|[\w.~%!$&'()*+,;=-]*)(?::(\d{1,5}))?(?:\/(\d*))?(?:\?([^#\s]*))?$/i;
const UNIX = /^unix:\/\/(?:([^@/?#\s]*)@)?([^@?#\s]+)(?:\?([^#\s]*))?$/;

// What is wrong with an address or an option, in one line.
class AddressError extends Error {
  constructor(message) {
    super(message);
    this.code = "ERR_REDIS_ADDRESS";
  }
}

// Whatever stands before an @.
function withoutCredentials(url) {
  return url.replace(/^([a-z]+:\/\/)?.*@/is, "$1");
}

function decode(text) {
  return decodeURIComponent(text.replaceAll("+", " "));
}

// A user without a password is the password.
function credentialsOf(text) {
  if (!text) return {};
  const at = text.indexOf(":");
  if (at < 0) return { password: decode(text) };
  return { username: at > 0 ? decode(text.slice(0, at)) : undefined, password: decode(text.slice(at + 1)) };
}

function databaseOf(path, query) {
  const words = path || new URLSearchParams(query || "").get("db") || "0";
  if (!/^\d{1,9}$/.test(words)) throw new Error("no database");
  return Number(words);
}

function parseUnix(url) {
  const match = UNIX.exec(url);
  if (!match) return null;
  const [, credentials, path, query] = match;
  const database = databaseOf("", query);
  const shown = `unix://${path}${database === 0 ? "" : `?db=${database}`}`;
  return { ...credentialsOf(credentials), socket: { path: decodeURIComponent(path) }, database, shown };
}

function parseTcp(url) {
  const match = TCP.exec(url);
  if (!match) return null;
  const [, scheme, credentials, name, digits, path, query] = match;
  const host = name.replace(/^\[|\]$/g, "") || "localhost";
  const port = digits === undefined ? PORT : Number(digits);
  if (port < 1 || port > 65535) return null;
  const database = databaseOf(path, query);
  const place = `${net.isIPv6(host) ? `[${host}]` : host}:${port}${database === 0 ? "" : `/${database}`}`;
  const socket = { host, port };
  if (scheme.toLowerCase() === "rediss") Object.assign(socket, { tls: true }, net.isIP(host) ? {} : { servername: host });
  return { ...credentialsOf(credentials), socket, database, shown: `${scheme.toLowerCase()}://${place}` };
}

// Throws AddressError. Returns what a connection needs, and `shown`, the address without the password.
function parse(url) {
  let address = null;
  try {
    address = parseUnix(url) || parseTcp(url);
  } catch {
    // The line is the same for all of them.
  }
  if (!address) throw new AddressError(`this is not the address of a Redis server: ${withoutCredentials(url)}`);
  return address;
}

function readFile(path) {
  try {
    return fs.readFileSync(path);
  } catch (error) {
    throw new AddressError(`cannot read ${path}: ${error.code}`);
  }
}

// The files of TLS: { ca, cert, key }, each a path or undefined.
function secure(address, files) {
  for (const [name, path] of Object.entries(files)) {
    if (path !== undefined) address.socket[name] = readFile(path);
  }
  return address;
}

module.exports = { AddressError, parse, secure };
