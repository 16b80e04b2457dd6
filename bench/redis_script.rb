# frozen_string_literal: true

# What a message of a channel with a history costs Redis, by the servers that are subscribed to the channel: CPU time of
# the redis-server, with the script of the engine (lib/rondo/pubsub/streams/scripts.rb) and with PUBLISH alone.
#
#   ruby bench/redis_script.rb [--messages N] [--out FILE.md]
#
# Needs redis-server. Messages of 100 bytes, 100 of them in one write. Subscribers read and drop what they get.
# SPDX-License-Identifier: MIT

require "optparse"
require "redis-client"
require "securerandom"
$LOAD_PATH.unshift(File.expand_path("../lib", __dir__), File.expand_path("../test", __dir__))
require "minitest"
require "support/redis_server"
require "rondo"
require "rondo/pubsub/redis/link"
require "rondo/pubsub/redis_streams"
require "rondo/pubsub/streams/scripts"

messages = 20_000
out = nil
OptionParser.new do |options|
  options.on("--messages N", Integer) { |number| messages = number }
  options.on("--out FILE") { |path| out = path }
end.parse!

Scripts = Rondo::PubSub::RedisStreams::Scripts
SIZES = [0, 1, 10, 100].freeze
TEXT = "x" * 100

def cpu_us(redis)
  info = redis.call("INFO", "cpu")
  (info[/used_cpu_user:([\d.]+)/, 1].to_f + info[/used_cpu_sys:([\d.]+)/, 1].to_f) * 1_000_000
end

# Subscribers in a process of their own.
def subscribe(server, count)
  return if count.zero?

  reader, writer = IO.pipe
  pid = fork do
    sockets = Array.new(count) { TCPSocket.new("127.0.0.1", server.port) }
    sockets.each { |socket| socket.write("SUBSCRIBE news\r\n") && socket.readpartial(1000) }
    writer.write(".")
    loop { IO.select(sockets).first.each { |socket| socket.read_nonblock(1 << 20, exception: false) or exit!(0) } }
  end
  reader.read(1)
  pid
end

def measure(server, count, messages)
  redis = RedisClient.config(url: server.url, protocol: 2).new_client
  Scripts::ALL.each { |script| redis.call("SCRIPT", "LOAD", script) }
  keys = Scripts::Keys.new(nil)
  pid = subscribe(server, count)
  number = 0
  name = SecureRandom.hex(8) # a publisher of its own
  kept = lambda do
    number += 1
    words = [0, "news", number, number - 1, 0, 1000, 0, "t", TEXT, number - 1]
    Scripts.call(Scripts::PUBLISH, [*keys.times, keys.by(name), *keys.of("news")], words)
  end
  [kept, -> { ["PUBLISH", "news", TEXT] }].map do |make|
    before = cpu_us(redis)
    (messages / 100).times { redis.pipelined { |pipe| 100.times { pipe.call(*make.call) } } }
    (cpu_us(redis) - before) / messages
  end
ensure
  redis&.close
  Process.kill("KILL", pid) && Process.wait(pid) if pid
end

rows = SIZES.map do |count|
  server = RedisServer.new
  rounds = Array.new(3) { measure(server, count, messages / (count < 100 ? 1 : 10)) }
  server.close
  kept, plain = rounds.transpose.map { |values| values.sort[1].round(1) }
  "| #{count} | #{kept} | #{plain} |"
end

table = <<~TEXT
  # What a message costs Redis, #{Time.now.utc.strftime("%Y-%m-%d %H:%M")} UTC

  `ruby bench/redis_script.rb --messages #{messages}`. #{`redis-server --version`[/v=\S+/]}; messages of 100 bytes, 100 in one write; CPU time of
  redis-server, median of 3, on a machine that was not quiet. The clients share its CPUs.

  | servers that are subscribed | µs/message on a channel with a history | µs/message by PUBLISH alone |
  |---|---|---|
  #{rows.join("\n")}
TEXT
out ? File.write(out, table) : puts(table)
