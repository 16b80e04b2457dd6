# frozen_string_literal: true

# A job of another process or machine: it sends a message to all browsers, through Redis. See config.ru.
# SPDX-License-Identifier: MIT

require "rondo"

Rondo::PubSub.default = Rondo::PubSub::Redis.new(ENV.fetch("REDIS_URL", "redis://localhost:6379"))
Rondo.publish("notifications", ARGV.first || "done at #{Time.now.strftime("%T")}")
# Queued messages leave before the process ends; see Rondo::PubSub::Redis#close.
