# frozen_string_literal: true

# Tracks and publisher of Redis Streams in random histories, without Redis: messages are published, lost, trimmed,
# connections break, Redis loses everything, the hub does not take. Whatever happens, a channel gets each id once,
# ascending, or a gap where some are missing. A history that fails names its seed: SEED=n runs only that one.
# Covers streams/tracks.rb and streams/publisher.rb.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/streams_model"

class StreamsHistoriesTest < Minitest::Test
  HISTORIES = Integer(ENV.fetch("RONDO_TEST_HISTORIES", 400))
  STEPS = 120
  CHANNELS = %w[x y z].freeze
  # What may happen in a history; each has some of it.
  FAULTS = %i[lose reconnect trim flush full stick leave back bad].freeze
  MOVES = %i[execute execute take take listen hear hear feed feed feed].freeze

  # One of them.
  class History
    attr_reader :servers, :faults, :redis

    def initialize(seed)
      @random = Random.new(seed)
      @redis = StreamsModel::Redis.new
      @servers = Array.new(2) { StreamsModel::Server.new(@redis) }
      @faults = FAULTS.select { @random.rand(4).zero? }
      @old = []
      @sent = Hash.new { |all, place| all[place] = [] }
    end

    # @return [Hash{Array => Array<String>}] by server and channel
    attr_reader :sent

    def run
      @servers.each { |server| CHANNELS.sample(2, random: @random).each { |channel| server.follow(channel) } }
      STEPS.times { step }
      settle
    end

    private

    def step
      @redis.now += @random.rand(3)
      server = @servers.sample(random: @random)
      case @random.rand(20)
      when 0..2 then publish(server, CHANNELS.sample(random: @random))
      when 3 then server.follow(CHANNELS.sample(random: @random))
      when 4 then server.copy(CHANNELS.sample(random: @random))
      when 5 then fail_somehow(server)
      when 6 then execute_old
      else move(server, MOVES.sample(random: @random))
      end
    end

    def publish(server, channel)
      texts = @sent[[server, channel]]
      texts << "#{@servers.index(server)}#{channel}#{texts.size}"
      server.publish(channel, texts.last)
    end

    def move(server, which)
      which == :feed ? server.feed : server.step(which)
    end

    # What Redis reads from a connection that the server has closed.
    def execute_old
      @old.sample(random: @random)&.execute
    end

    def fail_somehow(server)
      case @faults.sample(random: @random)
      when :lose then lose(server)
      when :reconnect then @old << server.disconnect
      when :trim then @redis.streams[CHANNELS.sample(random: @random)].shift(1 + @random.rand(2))
      when :flush
        @redis.flush
        @redis.now += 1000 # messages do not come faster than microseconds pass
      when :full then @redis.is_full = !@redis.is_full && [StreamsModel::OOM, StreamsModel::READONLY].sample(random: @random)
      when :bad then refuse_some(CHANNELS.sample(random: @random))
      when :stick then server.is_stuck = !server.is_stuck
      when :leave then @random.rand(2).zero? ? @saved = @redis.snapshot : nil
      when :back then go_back if @saved
      end
    end

    # Redis refuses all messages of a channel, or takes them again.
    def refuse_some(channel)
      @redis.bad.delete(channel) or @redis.bad[channel] = %w[WRONGTYPE NOPERM].sample(random: @random)
    end

    # A replica that is behind becomes the master: nothing of the old connections reaches it.
    def go_back
      @redis.restore(@saved)
      @old.clear
      @servers.each(&:disconnect)
    end

    def lose(server)
      live = server.listener.answers.select { |kind, words| kind == :push && words.first == "message" }
      lost = live.sample(random: @random) or return
      server.listener.answers.delete_if { |answer| answer.equal?(lost) }
    end

    # All is well again; a last message of each channel shows what was lost before it.
    def settle
      @redis.is_full = false
      @redis.bad.clear
      @servers.each { |server| server.is_stuck = false }
      calm
      CHANNELS.each { |channel| publish(@servers.first, channel) }
      calm
    end

    def calm
      rounds = 0
      400.times do
        @servers.each do |server|
          server.feed
          %i[execute take listen hear].each { |which| 3.times { server.step(which) } }
        end
        rounds = @servers.all? { |server| server.quiet? && server.tracks.pause.nil? } ? rounds + 1 : 0
        return if rounds == 10
      end
      raise "it does not come to rest: #{@servers.map { |server| server.outbox.size }} messages wait"
    end
  end

  def test_random_histories
    seeds = ENV["SEED"] ? [ENV["SEED"].to_i] : 1.upto(HISTORIES)
    seeds.each do |seed|
      history = History.new(seed)
      history.run
      check(history)
    rescue StandardError, Minitest::Assertion => e
      raise e.class, "SEED=#{seed}, #{history.faults}: #{e.message}", e.backtrace
    end
  end

  private

  def check(history)
    check_written(history)
    history.servers.each do |server|
      server.followed.each_value { |followed| check_channel(history, followed) }
      server.copies.each { |copy| check_copy(history, *copy) } unless history.faults.include?(:back)
      check_order(history, server)
    end
    check_told(history)
  end

  # What one server delivered, every other one delivered, or a gap later.
  def check_told(history)
    CHANNELS.each do |channel|
      all = history.servers.filter_map { |server| server.followed[channel] }
      all.each do |followed|
        others = all.flat_map(&:items).select { |item| item.text && item.id > followed.owed.to_i }.map(&:id)
        untold = others - followed.items.select(&:text).map(&:id)
        told = followed.items.reject(&:text).map(&:id).max || 0
        assert_empty untold.select { |id| id > told }, "gaps of #{channel} that were not told"
      end
    end
  end

  # Each message once, in the order of its publisher, unless Redis refused it for good.
  def check_written(history)
    return if history.faults.intersect?(%i[flush back])

    history.sent.each do |(server, channel), texts|
      prefix = "#{history.servers.index(server)}#{channel}"
      written = history.redis.ever[channel].map(&:text).select { |text| text.start_with?(prefix) }
      assert_equal texts - (history.redis.refused - written), written, "written to #{channel}"
    end
  end

  # `back`: what Redis has forgotten by then, somebody else may have seen.
  def check_channel(history, followed)
    is_strict = !history.faults.include?(:back)
    ids = history.redis.ever[followed.channel].map(&:id).select { |id| id > followed.owed }
    at = 0
    followed.items.each do |item|
      assert_operator item.id, :>, at, "ascending in #{followed.channel}"
      check_item(item, ids, at) if is_strict
      at = item.id
    end
    check_gaps(history, followed)
    assert_operator at, :>=, ids.last, "the end of #{followed.channel}" if ids.any?
  end

  def check_item(item, ids, reached)
    missing = ids.select { |id| id > reached && id < item.id }
    return unless item.text

    assert_empty missing, "without a gap before #{item.id} in #{item.channel}"
  end

  def check_gaps(history, followed)
    return if history.faults.intersect?(%i[flush trim back])

    assert_empty followed.items.select { |item| item.text.nil? }, "gaps though nothing is missing"
  end

  # One id is enough for a client of several channels. (A message that is lost alone is known with the next one.)
  def check_order(history, server)
    return if history.faults.intersect?(%i[lose back])

    ids = server.order.select { |item| item.text && item.id > server.followed[item.channel]&.owed.to_i }.map(&:id)
    assert_equal ids.sort, ids, "ascending over all channels"
  end

  def check_copy(history, channel, floor, items, last)
    ids = history.redis.ever[channel].map(&:id)
    assert_equal ids.select { |id| id > floor && id <= last }, items.map(&:id), "a copy of #{channel}"
  end
end
