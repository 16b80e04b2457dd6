# frozen_string_literal: true

# The engine of a machine as it is in lib (redis_streams.rb with its pump, tracks and publisher), without a thread and
# without sockets: the simulation moves one command or one answer at a time.
# SPDX-License-Identifier: MIT

require "support/streams_model"
require "rondo/pubsub/relay_frames"

module Simulate
  Streams = Rondo::PubSub::RedisStreams
  Broken = Rondo::PubSub::Redis::Link::Broken

  # What the simulation wants to know of it.
  Streams::Tracks.class_eval do
    attr_writer :copy_max

    def start_of(channel) = @tracks[channel] && (@tracks[channel].last || 0)
    def idle? = @tracks.empty? || (!held? && [@joining, @marking, @copies, @copying].none?(&:any?))
  end

  # All pauses are over the next time.
  Streams::Returned.class_eval do
    attr_writer :clock
  end

  # A connection to Redis: `out` is on its way there, `answers` are on their way back.
  class Link
    Asked = Struct.new(:entry, :block)

    attr_reader :out, :answers
    attr_accessor :is_broken

    def initialize(redis, &on_push)
      @redis = redis
      @on_push = on_push
      @out = []
      @answers = []
      @asked = []
      @subscribed_at = {}
      ask(["PING"]) { @ready = true }
    end

    def ready? = @ready
    def pending = @asked.size
    def unsent_bytes = 0

    def ask(words, &block)
      @out << words.map(&:to_s)
      @asked << Asked.new(words.first, block)
    end

    def ask_encoded(bytes, entry, &block)
      Rondo::PubSub::Redis::Replies.new(1 << 27).feed(bytes) { |words| @out << words }
      @asked << Asked.new(entry, block)
    end

    def unanswered = @asked.map { |asked| [asked.entry, true] }

    # Redis does not hear of it at once: it may still read what is on its way.
    def close
      @redis.forget(self)
      @is_closed = true
    end

    def push(*words)
      @answers << words unless @is_closed
    end

    # @return [Hash{String => Integer}] up to which id Redis had given ids when it subscribed this connection
    attr_reader :subscribed_at

    def execute
      words = @out.shift or return
      @subscribed_at[words.last] = @redis.highest if words.first == "SUBSCRIBE"
      reply = @redis.execute(words, self)
      push_reply(reply) unless reply == :pushed
    end

    # The machine reads an answer.
    def take
      raise Broken, "closed" if @is_broken
      return if @answers.empty?

      reply = @answers.shift
      return if @on_push&.call(reply)

      asked = @asked.shift
      asked.block&.call(reply)
    end

    def quiet? = @out.empty? && @answers.empty? && @asked.empty?

    private

    def push_reply(reply)
      @answers << reply unless @is_closed
    end
  end

  # The pump, moved by hand.
  class Pump < Streams::StreamPump
    attr_reader :commands, :listener
    attr_accessor :redis, :is_away
    # @return [Array<Link>] that are closed here, and that Redis may still read
    attr_accessor :old

    def initialize(...)
      super
      [@waker, @wake].each(&:close)
    end

    def wake = nil

    def feed
      attempt do
        open_links
        feed_links
      end
    end

    def read(link)
      attempt { link.take } if link
    end

    def break_links(reason = "no answer")
      attempt { raise Broken, reason }
    end

    private

    def attempt
      yield
    rescue Broken => e
      give_up_links(e.message, e.is_a?(Rondo::PubSub::Redis::Link::Refused))
    end

    def open_links
      raise Broken, "away" if @is_away

      unless @commands
        @commands = Link.new(@redis)
        @tracks.check(@commands, @publisher.acknowledged)
      end
      @listener ||= Link.new(@redis) { |reply| @subscriptions.dispatch(reply) } if @subscriptions.wanted?
    end

    def give_up_links(...)
      @old.concat([@commands, @listener].compact)
      super
    end
  end

  # The engine. What it tells the hub goes to `hub_link`.
  class Engine < Streams
    attr_reader :pump, :tracks, :publisher, :outbox, :subscriptions

    def initialize(redis, old)
      @simulated = redis
      @old = old
      super("redis://simulated", log: StreamsModel::Silence.new)
      start_thread
    end

    def quiet?
      links = [@pump.commands, @pump.listener].compact
      @outbox.empty? && links.all?(&:quiet?) && @tracks.pause.nil? && @tracks.idle?
    end

    private

    def begin_anew
      super
      @tracks.copy_max = @simulated.copy_max
      time = 0
      @publisher.returned.clock = -> { time += 10 }
    end

    def start_thread
      @pid = Process.pid
      @pump = new_pump { |entry, reply| answered(entry, reply) }
    end

    # A history has its own end.
    def flush_at_exit = nil

    def new_pump
      @terms = { timeout: 1, ping: 1, reply_max: 16 << 20 }
      Pump.new(@place, @outbox, @subscriptions, @mutex, outage: @outage, **@terms) { |*words| answered(*words) }.tap do |pump|
        pump.tracks = @tracks
        pump.publisher = @publisher
        pump.redis = @simulated
        pump.old = @old
      end
    end
  end
end
