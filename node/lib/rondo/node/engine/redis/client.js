// The client for Redis, a file of its own in each build: only a process that uses Redis loads it.
// SPDX-License-Identifier: MIT

"use strict";

const { ErrorReply, createClient } = require("@redis/client");

module.exports = { ErrorReply, createClient };
