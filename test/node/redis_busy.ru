# backtick_javascript: true
# frozen_string_literal: true

# An application that stops its process for longer than Redis has for a reply, as `sleep` does. It runs on Node only.
# SPDX-License-Identifier: MIT

Rondo::PubSub.default = Rondo::PubSub::Redis.new(ENV.fetch("OWN_REDIS"), timeout: 3).tap(&:start)

run lambda { |env|
  if env["PATH_INFO"] == "/busy"
    Rondo.publish("c", "once")
    # It leaves in the next turn of Node's loop; then nothing is read.
    `setImmediate(() => setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 7000)))`
  end
  [200, {}, [Rondo::PubSub.default.queued.to_s]]
}
