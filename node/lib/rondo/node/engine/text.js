// Strings of Opal and bytes. Text is a string of JavaScript. Bytes that are not UTF-8 are a String object with Opal's
// encoding ASCII-8BIT and a character for each byte. So text never needs a copy, and no byte is lost.
// SPDX-License-Identifier: MIT

"use strict";

const { isUtf8 } = require("node:buffer");
const ruby = require("./ruby");

const BEYOND_ASCII = /[^\x00-\x7f]/;
const HALF_PAIR = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const BINARY_NAMES = new Set(["BINARY", "ASCII-8BIT", "US-ASCII", "ASCII", "ISO-8859-1"]);

function isBinary(string) {
  return typeof string !== "string" && string.encoding["$binary?"]();
}

// The String object that stands for these bytes.
function binaryOf(latin1) {
  return ruby.Opal.enc(latin1, "ASCII-8BIT");
}

// What Ruby gets for bytes from outside.
function fromBytes(bytes) {
  return isUtf8(bytes) ? bytes.toString("utf8") : binaryOf(bytes.toString("latin1"));
}

// The same for a header value, which Node gives as one character for each byte.
function fromLatin1(value) {
  return BEYOND_ASCII.test(value) ? fromBytes(Buffer.from(value, "latin1")) : value;
}

// A header value for Node, one character for each byte.
function toLatin1(string) {
  if (isBinary(string)) return string.toString();
  const text = string.toString();
  return BEYOND_ASCII.test(text) ? Buffer.from(text, "utf8").toString("latin1") : text;
}

// A part of a body, as Node's streams take it: a string (UTF-8) or a Buffer.
function toWire(string) {
  if (typeof string === "string") return string;
  return isBinary(string) ? Buffer.from(string.toString(), "latin1") : string.toString();
}

function toBytes(string) {
  const wire = toWire(string);
  return typeof wire === "string" ? Buffer.from(wire, "utf8") : wire;
}

function byteLength(string) {
  return isBinary(string) ? string.length : Buffer.byteLength(string.toString(), "utf8");
}

// Methods of String: see opal/rondo/strings.rb.
function binary(string) {
  return isBinary(string) ? string : binaryOf(toLatin1(string));
}

function forceEncoding(string, name) {
  if (BINARY_NAMES.has(name)) return binary(string);
  return isBinary(string) ? fromBytes(toBytes(string)) : string;
}

function scrub(string, replacement) {
  return isBinary(string) ? string : string.replace(HALF_PAIR, () => replacement);
}

// Every byte but those that application/x-www-form-urlencoded leaves as they are, with %20 for a blank.
function escape(string) {
  return toLatin1(string).replace(/[^*\-.0-9A-Z_a-z]/g, (byte) => {
    return `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  });
}

// The bytes that were escaped; null for a % without two digits.
function unescape(string) {
  if (!string.includes("%")) return string;
  if (/%(?![0-9A-Fa-f]{2})/.test(string)) return null;
  const latin1 = toLatin1(string).replace(/%(..)/g, (_, digits) => String.fromCharCode(parseInt(digits, 16)));
  return fromBytes(Buffer.from(latin1, "latin1"));
}

// A message for one client: text as a string, anything else as a Buffer, null for text that is not valid.
function wire(string) {
  const made = toWire(string);
  return typeof made === "string" && !made.isWellFormed() ? null : made;
}

// A message for a channel: bytes that are UTF-8 are text, whatever their encoding is called.
function published(string) {
  const made = wire(string);
  return made instanceof Buffer && isUtf8(made) ? made.toString("utf8") : made;
}

module.exports = {
  BEYOND_ASCII, binary, binaryOf, byteLength, escape, forceEncoding, fromBytes, fromLatin1, isBinary, published, scrub,
  toBytes, toLatin1, toWire, unescape, wire,
};
