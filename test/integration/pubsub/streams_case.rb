# frozen_string_literal: true

# Shared by the tests of streams: servers of two workers that share only a Redis, and clients that write down what they
# saw.
# SPDX-License-Identifier: MIT

require_relative "../shell_case"
require "support/event_stream"
require "support/redis_server"

class StreamsCase < ShellCase
  APP = <<~'RUBY'
    require "uri"
    Rondo::PubSub.history("kept:*", match: :redis, size: 2000)
    Rondo::PubSub.history("few:*", match: :redis, size: 3, ttl: 60)
    class Feed
      def initialize(names) = @names = names
      def on_open(client)
        @names.each do |name|
          pattern = name.delete_prefix("pattern:")
          client.subscribe(pattern, match: (:redis if pattern != name))
        end
        client.write("open")
      end
      # The name is as good a key as any other String.
      def on_gap(client, channel) = warn("gap of #{@names.to_h { |name| [name, name] }.fetch(channel)} told")
    end
    run lambda { |env|
      query = env["QUERY_STRING"]
      if env["rack.upgrade?"]
        env["rack.upgrade"] = Feed.new(query.split(","))
        [200, {}, []]
      else
        channel, message = query.split("=", 2)
        answer = channel ? Rondo.publish(channel, URI.decode_www_form_component(message)).to_s : "hello"
        [200, { "content-type" => "text/plain" }, [answer]]
      end
    }
  RUBY

  # One event stream, as a browser has it: it knows its last id.
  class Reader
    # `opened`: the application has subscribed. `last_id_at_reset`: what it would have come back with right after the
    # last reset.
    attr_reader :seen, :resets, :opened, :last_id_at_reset
    attr_accessor :last_id

    def initialize
      @seen = []
      @resets = 0
    end

    # @param server [ServerProcess]
    # @param channels [Array<String>]
    # @return [self]
    def open(server, *channels)
      @socket&.close
      uri = URI(server.url)
      @socket = TCPSocket.new(uri.host, uri.port)
      id = "Last-Event-ID: #{@last_id}\r\n" if @last_id
      @socket.write("GET /?#{channels.join(",")} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n#{id}\r\n")
      @stream = EventStream.new
      @ended = false
      skip_head
      self
    end

    # Reads until the block is true.
    # @yieldreturn [Boolean]
    def read_until(patience = ShellCase::PATIENCE, &)
      take
      wait(patience, &) or raise "only #{@seen.inspect} came, and #{@resets} resets"
    end

    # Reads until the block is true, or the time is up.
    # @param seconds [Numeric]
    # @return [Boolean]
    def wait(seconds)
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      until (is_true = yield)
        left = limit - Process.clock_gettime(Process::CLOCK_MONOTONIC)
        return false unless left.positive? && @socket.wait_readable(left)

        read_some
        take
      end
      is_true
    end

    # Opens it, and again when the server has ended it, as a worker does that stops.
    # @yieldreturn [Boolean]
    def stay(server, *channels)
      10.times do
        self.open(server, *channels)
        read_until { ended? || yield }
        return unless ended?
      end
      raise "ended again and again"
    end

    # @return [Boolean] the server has ended it
    def ended?
      @ended
    end

    def close
      @socket&.close
      @socket = nil
    end

    private

    def read_some
      @stream.feed(@socket.readpartial(65_536))
    rescue EOFError
      raise if @ended

      @ended = true
    end

    def skip_head
      bytes = +"".b
      bytes << @socket.readpartial(4096) until bytes.include?("\r\n\r\n")
      @stream.feed(bytes.split("\r\n\r\n", 2).last)
    end

    def take
      while (event = @stream.events.shift)
        @last_id = event.id unless event.id.empty?
        event.type == "reset" ? note_reset : note(event.data)
      end
    end

    def note_reset
      @resets += 1
      @last_id_at_reset = @last_id
    end

    def note(data)
      data == "open" ? @opened = true : @seen << data
    end
  end

  def setup
    super
    start_store
    @readers = []
    write "config.ru", self.class::APP
  end

  def teardown
    @readers.each(&:close)
    super
    stop_store
  end

  private

  # What the servers share; other classes have another one.
  def start_store
    @redis = new_redis
  end

  def new_redis
    RedisServer.new(*redis_words)
  end

  def stop_store
    @redis.close
  end

  def redis_words
    []
  end

  def server(*words, redis: @redis.url)
    start("-w", "2", "--redis-streams", redis, *words).tap do |server|
      server.wait_for_log(/Redis at/)
    end
  end

  # @param after [String, nil] the last id that it has seen
  def reader(server, *channels, after: nil)
    Reader.new.tap do |reader|
      @readers << reader
      reader.last_id = after
      reader.open(server, *channels)
    end
  end

  # A server, and a client that has seen its first message on kept:x.
  def server_with_reader(message)
    a = server
    reader = reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    publish(a, "kept:x", message)
    reader.read_until { reader.seen.size == 1 }
    [a, reader]
  end

  def wait_for_subscribers(channel, count)
    eventually("#{count} subscribed") { @redis.cli("PUBSUB", "NUMSUB", channel).split.last == count.to_s }
  end

  # Returns when all readers of kept:x are subscribed, in their workers, too. Redis counts servers.
  def wait_until_heard(servers, readers)
    number = 0
    eventually("everybody hears everybody") do
      number += 1
      servers.each { |each| publish(each, "kept:x", "warm-#{number}") }
      readers.all? { |each| each.wait(0.1) { each.seen.count("warm-#{number}") == servers.size } }
    end
    readers.each { |each| each.seen.clear }
  end

  def publish(server, channel, message)
    assert_equal "true", get(server, "/?#{channel}=#{message}").body
  end

  # One after the other: the two workers of a server have no order among themselves.
  def publish_in_turn(server, channel, messages)
    messages.each do |message|
      length = length_of(channel)
      publish(server, channel, message)
      eventually("#{message} in Redis") { length_of(channel) > length }
    end
  end

  def length_of(channel)
    @redis.cli("XLEN", "{rondo}:s:#{channel}").to_i
  end
end
