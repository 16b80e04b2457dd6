# frozen_string_literal: true

# The benchmarks of push count only messages that really arrived: against the floor, which delivers everything, and
# against a server of the test, which lies. One short round of each kind of scenario shows that everything the
# benchmarks need works.
# SPDX-License-Identifier: MIT

require "test_helper"
require "socket"
require_relative "../../bench/measure"
require_relative "../../bench/report"

%w[hello push_echo push_chat push_broadcast1k push_bystander push_idle push_stalled push_patterns].each do |name|
  require_relative "../../bench/scenarios/#{name}"
end

class BenchPushTest < Minitest::Test
  # Upgrades and greets every client. When bytes come on the control connection, the one subscriber gets the frames that
  # the test made, byte by byte.
  class Liar
    ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    attr_reader :port, :heard

    def initialize(*frames, upgrades: true)
      @frames = frames
      @upgrades = upgrades
      @heard = Queue.new
      @listener = TCPServer.new("127.0.0.1", 0)
      @port = @listener.addr[1]
      @thread = Thread.new { loop { serve(@listener.accept) } }
    end

    def self.text(message)
      [0x81, message.bytesize].pack("CC") + message
    end

    def self.message(number)
      text(format("%010d", number))
    end

    def stop
      @thread.kill.join
      @listener.close
    end

    private

    def serve(socket)
      path = socket.gets("\r\n\r\n")[/\S+ (\S+)/, 1]
      return socket.write("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n") unless @upgrades

      socket.write("HTTP/1.1 101 x\r\nSec-WebSocket-Accept: #{ACCEPT}\r\n\r\n#{Liar.text("ready")}")
      return hear(@subscriber = socket) unless path == "/control"

      socket.readpartial(100)
      @frames.join.each_char { |byte| @subscriber.write(byte) }
    end

    def hear(socket)
      Thread.new do
        loop { @heard << socket.readpartial(100) }
      rescue SystemCallError, EOFError
        @heard << nil
      end
    end
  end

  KINDS = %w[push_echo push_chat push_broadcast1k push_bystander push_idle push_stalled push_patterns].freeze

  def setup
    Bench::Programs.build
  end

  def floor
    @floor ||= Bench::Servers.all.fetch("floor")
  end

  # Publishes to a liar. The client waits until it has what it counts, or for its patience: where something is to be
  # missing, that is doubled until the rest has arrived in time.
  #
  # @param expected [Hash{Symbol => Integer}] what the client has to count
  # @yieldparam liar [Liar]
  def assert_published(expected, *frames, count:, patience: 500)
    liar = Liar.new(*frames)
    said = Bench::PushClient.run(liar.port, "--patience", patience.to_s) do |client|
      client.open(1, "/subscribe")
      client.tell("publish", 10, count, 1, 0, 0).slice(*expected.keys).tap do |counted|
        yield liar if block_given? && counted == expected
      end
    end
    return assert_published(expected, *frames, count: count, patience: patience * 2) if said != expected && patience < 16_000

    assert_equal expected, said
  ensure
    liar.stop
  end

  def test_what_the_floor_sends_arrives_once
    running = Bench::Running.new(floor, "push", wrapper: [])
    Bench::PushClient.run(running.port) do |client|
      client.open(40, "/subscribe")
      [10, 125, 126, 8192].each do |bytes|
        assert_arrived 40 * 7 * 3, client.tell("publish", bytes, 7, 3, 0, 0)
      end
    end
  ensure
    running&.stop
  end

  def test_missing_doubled_and_strange_messages_are_counted
    frames = [0, 1, 3, 3].map { |number| Liar.message(number) }

    assert_published({ deliveries: 4, missing: 1, doubled: 1, strange: 1, lost: 0 },
                     *frames, Liar.text("no number"), Liar.message(4), count: 5)
  end

  def test_what_never_comes_is_missing
    assert_published({ deliveries: 1, missing: 1, doubled: 0 }, Liar.message(0), count: 2)
  end

  def test_a_ping_gets_its_pong
    assert_published({ deliveries: 1 }, "\x89\x02hi".b, Liar.message(0), count: 1) do |liar|
      assert_equal "\x8a\x82".b, liar.heard.pop[0, 2].b
    end
  end

  def test_a_close_is_a_loss
    assert_published({ deliveries: 0, missing: 1, lost: 1 }, "\x88\x02\x03\xe8".b, count: 1) do |liar|
      assert_nil liar.heard.pop
    end
  end

  def test_a_server_that_does_not_upgrade_is_told
    liar = Liar.new(upgrades: false)
    error = assert_raises(Bench::Silent) do
      Bench::PushClient.run(liar.port) { |client| client.open(3, "/subscribe") }
    end
    assert_equal "only 0 of 3 WebSockets opened", error.message
  ensure
    liar.stop
  end

  def test_a_round_of_every_kind
    measurements = KINDS.map do |name|
      scenario = Bench.scenarios.fetch(name).dup.tap { |small| small.over_connections(4) }
      Bench::Measurement.new(scenario, [floor]).run(rounds: 1, seconds: 0.02)
    end

    assert_empty(measurements.flat_map { |measurement| measurement.contestants.flat_map(&:notes) })
    text = Bench::Report.new(measurements, seconds: 0.02).markdown
    KINDS.each { |name| assert_includes text, "## #{name}" }
  end

  def test_a_round_with_losses_has_no_figures
    contestant = Bench::Contestant.new(floor, Bench.scenarios.fetch("push_echo"))
    found = [{ deliveries: 9, missing: 1, doubled: 0, strange: 0, lost: 0, wrong: 1 }]

    assert_equal({ wrong: 1 }, contestant.send(:judged, found, message_us: 1.0))
    assert_match(/9 deliveries, 1 missing/, contestant.notes.first)
  end

  def assert_arrived(count, said)
    assert_equal [count, 0, 0, 0, 0], said.values_at(:deliveries, :missing, :doubled, :strange, :lost)
  end
end
