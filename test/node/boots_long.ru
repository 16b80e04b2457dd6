# backtick_javascript: true
# frozen_string_literal: true

# The application of a worker that is stopped while it loads: it loads until there is a file.
# SPDX-License-Identifier: MIT

puts "loading"
`
  const { existsSync } = require("node:fs");
  const never = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(process.env.GO)) Atomics.wait(never, 0, 0, 1);
`
run ->(_env) { [200, {}, []] }
