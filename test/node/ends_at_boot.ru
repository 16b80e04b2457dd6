# backtick_javascript: true
# frozen_string_literal: true

# The application of a worker that ends as soon as it has said that it serves.
# SPDX-License-Identifier: MIT

`
  const send = process.send;
  process.send = (message, ...rest) => {
    send.call(process, message, ...rest);
    if (message.booted) process.reallyExit(3);
    return true;
  };
`
run ->(_env) { [200, {}, []] }
