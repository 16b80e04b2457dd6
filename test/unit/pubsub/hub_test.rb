# frozen_string_literal: true

# The hub as the master has it: sockets for workers, messages of the master itself, and the handover to the next
# program. The C tests cover what it does with messages.
# SPDX-License-Identifier: MIT

require "test_helper"
require "tempfile"
require "rondo/pubsub/hub"

class HubTest < Minitest::Test
  SUBSCRIBE = 1
  PUBLISH = 3
  KEEP = 7

  # Raised in the thread that closes.
  class Interrupted < StandardError; end

  # Records what is logged.
  class Log
    attr_reader :lines

    def initialize = @lines = []

    def error(line) = @lines << line
  end

  def setup
    @log = Log.new
    @env = {}
    @board = Rondo::Scoreboard.new(4)
    @settings = Rondo::Settings::Resolved.new({ max_publish_bytes: ["1k", "test"] })
    @ios = []
    @hub = new_hub
  end

  def teardown
    @hub.close
    @ios.each { |io| io.close unless io.closed? }
  end

  def new_hub
    Rondo::Hub.new(@settings, @board, log: @log, env: @env)
  end

  def link(seat = 0)
    number, io = @hub.link(seat)
    @ios << io
    [number, io]
  end

  def frame(type, channel, payload = "", flags: 0)
    [type, flags, channel.bytesize, payload.bytesize, 0].pack("CCnNQ>") + channel + payload
  end

  # @return [Array(Integer, String, String)] type, channel, payload
  def take(io)
    assert io.wait_readable(10), "nothing came"
    type, _, channel, payload, = io.read(16).unpack("CCnNQ>")
    [type, io.read(channel), io.read(payload)]
  end

  # When the hub counts the subscription, it has arrived.
  def subscribe(io, channel)
    before = @hub.stats[:published]
    io.write(frame(SUBSCRIBE, channel), frame(PUBLISH, "nobody"))
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 10
    Thread.pass until @hub.stats[:published] > before || Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
  end

  def test_the_master_publishes
    _, io = link
    subscribe(io, "news")
    assert @hub.publish(:news, "hello")
    assert_equal [PUBLISH, "news", "hello"], take(io)
    @hub.publish("news", { a: 1 })
    assert_equal '{"a":1}', take(io).last
    assert_raises(ArgumentError) { @hub.publish("news", "x" * 1025) }
    assert_raises(ArgumentError) { @hub.publish("", "x") }
    assert_raises(TypeError) { @hub.publish("news", 1) }
  end

  def test_rondo_publish_in_the_master
    _, io = link
    Rondo::PubSub.hub = @hub
    Rondo::PubSub.history("kept", size: 2, ttl: 3)
    assert_equal [KEEP, "kept", [2, 3000].pack("NQ>")], take(io)
    subscribe(io, "news")
    assert Rondo.publish("news", "hello")
    assert_equal [PUBLISH, "news", "hello"], take(io)
    assert Rondo.publish("news", "for blocks of the master", false)
    assert Rondo.publish("news", "last")
    assert_equal [PUBLISH, "news", "last"], take(io)
  ensure
    Rondo::PubSub.hub = nil
    Rondo::PubSub.history("kept", size: 0)
  end

  def test_the_end_of_a_worker
    number, io = link
    @hub.unlink(number)
    @hub.unlink(nil)
    assert_nil io.read(1)
    assert_equal 0, @hub.stats[:links]
  end

  def test_its_row_of_the_scoreboard
    _, io = link(2)
    subscribe(io, "news")
    @hub.publish("news", "hello")
    take(io)
    subscribe(io, "other")
    assert_equal 1, @board.get(2, :relayed)
    assert_raises(IndexError) { @hub.link(4) }
  end

  def test_whoever_loses_messages_is_named_once
    @hub.close
    @settings = Rondo::Settings::Resolved.new({ hub_queue_bytes: [65_536, "test"] })
    @hub = new_hub
    number, io = link
    subscribe(io, "news")
    20.times { @hub.publish("news", "x" * 50_000) }
    named = []
    2.times { @hub.each_outage { |each| named << each } }
    assert_equal [number], named
  end

  def test_it_goes_on_after_a_failed_exec
    _, io = link
    subscribe(io, "news")
    _, ios = @hub.hand_on
    @hub.go_on
    assert(ios.drop(1).all?(&:close_on_exec?))
    @hub.go_on # no state was handed over
    @hub.publish("news", "hello")
    assert_equal "hello", take(io).last
  end

  # It is raised at the wait for the native thread.
  def test_closing_again_after_an_interrupt
    _, io = link
    Thread.handle_interrupt(Interrupted => :never) do
      Thread.current.raise(Interrupted)
      assert_raises(Interrupted) { Thread.handle_interrupt(Interrupted => :on_blocking) { @hub.close } }
    end
    @hub.close
    assert io.wait_readable(10), "it is still there"
    assert_nil io.read(1)
  end

  def test_a_child_has_nothing_of_it
    _, io = link
    pid = fork do
      @hub.publish("news", "x")
      exit!(1)
    rescue Rondo::Error
      sleep # with copies of all descriptors that were open at the fork
    end
    @hub.close
    assert_nil io.read(1)
  ensure
    Process.kill("KILL", pid)
    Process.wait(pid)
  end

  def test_a_file_that_is_none
    _, io = link
    number, worker = @hub.link(1)
    file = Tempfile.new
    file.write("what is this?...")
    file.flush
    @env[Rondo::Hub::VARIABLE] = "#{file.dup.tap { |copy| copy.autoclose = false }.fileno}:"
    other = new_hub
    assert_match(/publish only to their own clients/, @log.lines.first)
    assert_equal 0, other.stats[:links]
    other.close
    worker.close
    assert_operator number, :>, 1
    refute_predicate io, :closed?
  end

  def test_a_process_that_goes_on_without_workers
    own, other = UNIXSocket.pair
    file = Tempfile.new
    own.autoclose = false
    env = { Rondo::Hub::VARIABLE => "#{file.dup.tap { |copy| copy.autoclose = false }.fileno}:#{own.fileno}" }
    Rondo::Hub.dismiss(env)
    assert_empty env
    assert_nil other.read(1)
    Rondo::Hub.dismiss({})
    other.close
  end

  def test_patterns_match_as_those_of_redis
    { %w[a* abc] => true, %w[a? abc] => false, ["[^a]", "\xff".b] => true, ["*", ""] => true, ["é*", "éa"] => true }.each do |words, result|
      assert_equal result, Rondo::Hub::Core.matches?(*words), words.inspect
    end
    assert_raises(TypeError) { Rondo::Hub::Core.matches?("a", nil) }
  end
end
