# frozen_string_literal: true

# What can be there in numbers beside the requests and messages that are measured: timers that are far away, and
# channels that nothing is published to. Used by scale.rb.
require_relative "../../lib/rondo" unless defined?(Rondo)

HOUR = 3_600_000
TAKEN = { names: 0 } # rubocop:disable Style/MutableConstant

# Gets the published messages, and is subscribed to channels that nobody else has.
class Subscriber
  def initialize(others)
    @others = others
  end

  def on_open(client)
    taken = Array.new(@others) { client.subscribe("channel #{TAKEN[:names] += 1}") }
    client.write("ready") if client.subscribe("all") && taken.all?
  end
end

# Publishes "COUNT BYTES FIRST": COUNT messages of that size, numbered from FIRST.
module Control
  def self.on_open(client)
    client.write("ready")
  end

  def self.on_message(client, data)
    count, bytes, first = data.split.map(&:to_i)
    count.times { |number| client.publish("all", (first + number).to_s.rjust(10, "0") + "x" * (bytes - 10)) }
  end
end

run lambda { |env|
  number = env["QUERY_STRING"].to_i
  if env["rack.upgrade?"] == :websocket
    env["rack.upgrade"] = env["PATH_INFO"] == "/control" ? Control : Subscriber.new(number)
    [0, {}, []]
  else
    number.times { Rondo.run_after(HOUR) { nil } } if env["PATH_INFO"] == "/timers"
    [200, { "content-type" => "text/plain", "content-length" => "13" }, [+"Hello, World!"]]
  end
}
