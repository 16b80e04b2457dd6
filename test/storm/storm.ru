# frozen_string_literal: true

# The application of the storm: every way in which an answer can leave, and every way in which a call can
# end. What a path does is its method below; `?` gives it a number.
# SPDX-License-Identifier: MIT

require "timeout"

PART = ("p" * 8192).freeze
LARGE = ("l" * 500_000).freeze
LATER = Queue.new # streams that another thread ends
FILE = ENV.fetch("RONDO_STORM_FILE")

# Threads of each process that serves: they do not survive the fork of a worker.
module Beside
  @pid = nil
  @mutex = Mutex.new

  def self.begin
    return if @pid == Process.pid

    @mutex.synchronize do
      next if @pid == Process.pid

      @pid = Process.pid
      Thread.new { end_streams }
      Thread.new { loop { sleep(0.2) && GC.start } } # a stream that nobody knows any more is closed by it
    end
  end

  def self.end_streams
    while (stream = LATER.pop)
      begin
        stream.write(PART)
        stream.close
      rescue StandardError
        next # its client has left
      end
    end
  end
end

# A body of so many parts, which may fail.
Parts = Struct.new(:number, :fails) do
  def each
    number.times { yield PART }
    raise "the body fails" if fails
  end

  def close
    Storm::CLOSED << self if Storm::CLOSED.size < 100
  end
end

# What a client of an upgraded connection can ask for, by the first letter of its message.
class Orders
  def on_open(client)
    client.subscribe("all")
    client.write("ready") if client.protocol == :websocket
  end

  def on_message(client, data)
    rest = data.byteslice(1..)
    case data[0]
    when "e" then client.write(rest)
    when "r" then raise "told to"
    when "k" then Thread.current.kill
    when "h" then client.handler = Orders.new
    when "n" then client.handler = nil
    when "c" then client.close(4000, "told to")
    when "b" then client.write(LARGE)
    when "t" then Thread.new { client.write(rest) }
    when "y" then sleep(0.003)
    else channels(client, data[0], rest)
    end
  end

  def on_drained(client)
    client.publish("drained", "one")
  end

  def on_shutdown(client)
    client.write("bye")
  end

  private

  def channels(client, order, name)
    case order
    when "s" then client.subscribe(name)
    when "S" then client.subscribe(name) { |_, message| client.write(message) }
    when "p" then client.subscribe("#{name}*", match: :redis)
    when "H" then client.subscribe("kept", since: name.to_i)
    when "u" then client.unsubscribe(name)
    when "x" then client.publish(name.empty? ? "all" : name, PART)
    when "K" then client.publish("kept", name)
    end
  end
end

# One method for each path.
module Storm
  CLOSED = []
  PATHS = %w[hello each fails large stream lost forgotten hijack partial killed thrown exits timed slow input some
             file sendfile hints raises forks odd].freeze

  module_function

  def hello(_env, _number) = [200, { "content-type" => "text/plain" }, ["hello"]]
  def each(_env, number) = [200, {}, Parts.new(number, false)]
  def fails(_env, number) = [200, {}, Parts.new(number, true)]
  def large(_env, _number) = [200, {}, [LARGE]]
  def stream(_env, number) = [200, {}, ->(stream) { write_parts(stream, number) }]
  def lost(_env, _number) = [200, {}, ->(stream) { LATER << stream }]
  def forgotten(_env, _number) = [200, {}, ->(stream) { stream.write(PART) }]
  def partial(_env, number) = [200, { "rack.hijack" => ->(stream) { write_parts(stream, number) } }, []]
  def killed(_env, _number) = Thread.current.kill
  def thrown(_env, _number) = throw(:storm)
  def exits(_env, _number) = exit(1)
  def timed(_env, _number) = Timeout.timeout(0.001) { sleep(0.01) }
  def file(_env, _number) = [200, {}, File.open(FILE)]
  def sendfile(_env, _number) = [200, { "x-sendfile" => FILE }, []]
  def raises(_env, _number) = raise("told to")
  def odd(_env, number) = [number, { "x-bad\n" => "a" }, nil]

  def write_parts(stream, number)
    number.times { stream.write(PART) }
  rescue StandardError
    nil # its client has left
  ensure
    stream.close
  end

  def hijack(env, number)
    io = env["rack.hijack"].call
    io.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello") if number.even?
    [-1, {}, Parts.new(0, false)]
  rescue SystemCallError, IOError
    [-1, {}, []] # its client has left
  ensure
    io&.close
  end

  def slow(_env, number)
    sleep(number / 1000.0)
    hello(nil, nil)
  end

  def input(env, _number) = [200, {}, [env["rack.input"].read.bytesize.to_s]]
  def some(env, number) = [200, {}, [env["rack.input"].read(number).to_s]]

  def hints(env, _number)
    env["rack.early_hints"]&.call("link" => "</a.css>; rel=preload")
    (env["rack.response_finished"] || []) << ->(*) {}
    hello(nil, nil)
  end

  # A child that goes on with the call as if nothing had happened.
  def forks(_env, _number)
    pid = fork
    Process.detach(pid) if pid
    hello(nil, nil)
  end
end

Rondo::PubSub.history("kept", size: 50)

run lambda { |env|
  Beside.begin
  next (env["rack.upgrade"] = Orders.new) && [0, {}, []] if env["rack.upgrade?"]

  name = env["PATH_INFO"].delete_prefix("/")
  Storm::PATHS.include?(name) ? Storm.public_send(name, env, env["QUERY_STRING"].to_i) : Storm.hello(env, 0)
}
