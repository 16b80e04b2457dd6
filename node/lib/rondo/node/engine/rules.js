// Rules about the bytes of a request that Node's parser does not have: they are those of the server on MRI
// (test/conformance/rules). A refusal is the status of an answer after which the connection ends.
// SPDX-License-Identifier: MIT

"use strict";

const limits = require("./limits");

// RFC 3986: visible ASCII without the bytes that a URI does not have.
const TARGET = /^[!$-;=?-[\]_a-z~]+$/;
const ABSOLUTE = /^https?:\/\/([^/?]*)(?:[/?]|$)/i;
// RFC 3986, section 3.2.2, without the comma.
const AUTHORITY = /^(?:\[[0-9a-f:.]+\]|(?:[\w.~!$&'()*+;=-]|%[0-9a-f]{2})+)(?::(\d{0,5}))?$/i;

let lastAuthority = null;
// Clients of a server mostly name the same one.
function isAuthority(text) {
  if (text === lastAuthority) return true;
  const match = AUTHORITY.exec(text);
  if (!match || Number(match[1] || 0) > 65535) return false;
  lastAuthority = text;
  return true;
}

function versionRefusal(req) {
  if (req.httpVersionMajor === 1) return 0;
  return req.httpVersionMajor === 0 ? 400 : 505;
}

// A target in absolute form names the authority; what Host says does not count then.
function targetRefusal(req, facts) {
  const { url } = req;
  if (url.length > limits.maxTargetBytes) return 414;
  if (!TARGET.test(url)) return 400;
  if (url.charCodeAt(0) === 47) return 0;
  if (url === "*") return req.method === "OPTIONS" ? 0 : 400;
  const match = ABSOLUTE.exec(url);
  if (!match || !isAuthority(match[1])) return 400;
  facts.authority = match[1];
  return 0;
}

function hostRefusal(facts) {
  if (facts.hosts === 0) return 0;
  return facts.hosts === 1 && isAuthority(facts.host) ? 0 : 400;
}

// The only coding is `chunked`, once, and not for HTTP/1.0.
function codingRefusal(req, facts) {
  if (facts.coding === null) return 0;
  if (req.httpVersionMinor === 0) return 400;
  return facts.coding.toLowerCase() === "chunked" ? 0 : 501;
}

// @return 0, or the status of the refusal
function refusalOf(req, facts) {
  if (facts.isTooLarge || req.rawHeaders.length / 2 > limits.maxHeaderCount) return 431;
  return versionRefusal(req) || targetRefusal(req, facts) || hostRefusal(facts) || codingRefusal(req, facts);
}

module.exports = { refusalOf };
