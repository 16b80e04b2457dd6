# backtick_javascript: true
# frozen_string_literal: true

# Publishes to more channels than the history keeps messages. It runs on Node only.
# SPDX-License-Identifier: MIT

Rondo::PubSub.history("many.*", true, size: 2)

run lambda { |_env|
  200_000.times { |number| Rondo.publish("many.#{number}", "x") }
  [200, {}, [`Opal.rondo.bus.history.count.toString()`]]
}
