# frozen_string_literal: true

# A job: it is no server, and loads nothing that was compiled.

require "rondo/pubsub/publisher"

publisher = Rondo::Publisher.new(ENV.fetch("CONTROL", "tcp://127.0.0.1:9293"), token: ENV.fetch("TOKEN"))
publisher.publish("jobs", ARGV.fetch(0))
