// The Redis that the command line or the environment names.
// SPDX-License-Identifier: MIT

"use strict";

const log = require("../log");
const { AddressError, parse } = require("./address");

// The variable is often meant for other programs, so an error in it does not stop the server.
const COMMON = "REDIS_URL";

// @param option the value of -r
// Returns the address, or null. Throws AddressError.
function redisUrl(option, environment = process.env) {
  const own = option ?? environment.RONDO_REDIS_URL;
  if (own) return checked(own);
  if (!environment[COMMON]) return null;
  try {
    return checked(environment[COMMON]);
  } catch (error) {
    if (!(error instanceof AddressError)) throw error;
    log.error(`! ${COMMON} is not used: ${log.escape(error.message)}`);
    return null;
  }
}

function checked(url) {
  parse(url);
  return url;
}

module.exports = { redisUrl };
