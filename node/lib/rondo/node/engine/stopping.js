// Whether this process is on its way to its end, and what has to end with it.
// SPDX-License-Identifier: MIT

"use strict";

module.exports = {
  begun: false,
  // Upgraded connections that are open.
  endpoints: new Set(),
};
