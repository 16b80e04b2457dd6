# frozen_string_literal: true

# A stream that takes some messages and others not now: which are sent again, and in which order. There is no NATS: a
# server of the test speaks for it.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/nats"
require "rondo/pubsub/nats/stream"
require "stringio"
require "support/waiting"

class RefusedNatsTest < Minitest::Test
  include Waiting

  TERMS = Rondo::PubSub::Queued::Terms.new(10, 0, nil)
  NO_ROOM = { error: { code: 503, err_code: 10_023, description: "insufficient resources" } }.freeze

  # One connection. `refuse` answers whether the stream does not take a message now; `stored` are those that it took,
  # `plain` those of other channels.
  class Peer
    attr_reader :stored, :plain, :tried, :connections
    attr_accessor :refuse

    def initialize
      @stored = []
      @plain = []
      @tried = Hash.new(0)
      @connections = 0
      @begun = Thread::Queue.new
      @refuse = ->(_text) { false }
      @server = TCPServer.new("127.0.0.1", 0)
      @thread = Thread.new { loop { serve(@server.accept) } }
    end

    def port = @server.addr[1]
    def begin = @begun << true

    def close
      @thread.kill
      [@server, @socket].each { |each| each&.close }
    end

    private

    def serve(socket)
      @socket = socket
      @connections += 1
      socket.write("INFO {\"version\":\"2.10.0\",\"max_payload\":100000}\r\n")
      while (line = socket.gets)
        word, *rest = line.split
        case word
        when "PING" then socket.write("PONG\r\n")
        when "PUB", "HPUB" then take(rest.first, rest[1], socket.read(rest.last.to_i + 2).chomp)
        end
      end
    rescue SystemCallError, IOError
      nil
    end

    def take(subject, reply, bytes)
      text = bytes.split("\r\n\r\n", 2).last.to_s
      return @plain << text if subject.start_with?("rondo.p.")

      words = subject.start_with?("rondo.s.") ? write(text) : answer(subject, text)
      json = JSON.generate(words)
      @socket.write("MSG #{reply} r #{json.bytesize}\r\n#{json}\r\n")
    end

    def write(text)
      @tried[text] += 1
      return NO_ROOM if @refuse.call(text)

      @stored << text
      { stream: "rondo-rondo", seq: @stored.size }
    end

    def answer(subject, text)
      return { num_pending: 0 } if subject.include?("CONSUMER")

      @is_begun ||= @begun.pop
      config = text.empty? ? {} : JSON.parse(text)
      { created: "2026-01-01T00:00:00Z", state: { last_seq: 0, messages: 0 }, config: config }
    end
  end

  def setup
    @peer = Peer.new
    @log = StringIO.new
    @engine = engine
  end

  def teardown
    @engine.close(0)
    @peer.close
  end

  # 4 and 6 to 8 were under way. Nothing else goes before 3 and 5.
  def test_what_was_refused_is_sent_again_in_its_order_and_nothing_else
    @peer.refuse = ->(text) { %w[3 5].include?(text) && @peer.tried[text] == 1 }
    publish(1..8)
    @peer.begin
    wait_until { @peer.tried.size == 8 }
    wait_until { @log.string.include?("wait") }
    publish(9..12)
    wait_until { @engine.queued.zero? }
    assert_equal %w[1 2 4 6 7 8 3 5 9 10 11 12], @peer.stored
    assert_equal %w[3 5], @peer.tried.select { |_, count| count == 2 }.keys
    assert_equal [2, 1], [@log.string.scan("a rule").size, @peer.connections]
  end

  # They are behind it in the queue, and more come.
  def test_other_channels_do_not_wait
    held = true
    @peer.refuse = ->(_text) { held }
    publish(1..300)
    @engine.publish("news", "behind")
    @peer.begin
    wait_until { @peer.plain == ["behind"] }
    answers = Thread::Queue.new
    20.times { |number| @engine.publish("news", number.to_s) { |answer| answers << answer } }
    20.times { assert_equal true, answers.pop }
    assert_equal [[], 300], [@peer.stored, @engine.queued]
    held = false
    wait_until { @engine.queued.zero? }
    assert_equal (1..300).map(&:to_s), @peer.stored
    assert_equal 1, @peer.connections
  end

  # They take three quarters of the queue, and lose what comes then.
  def test_there_is_room_for_other_channels
    @engine.close(0)
    @engine = engine(queue: 40)
    held = true
    @peer.refuse = ->(_text) { held }
    publish(1..30)
    @peer.begin
    wait_until { @engine.instance_variable_get(:@outbox).crowded? }
    refute @engine.publish("orders", "31", TERMS)
    answers = Thread::Queue.new
    10.times { |number| assert @engine.publish("news", number.to_s) { |answer| answers << answer } }
    10.times { assert_equal true, answers.pop }
    held = false
    wait_until { @engine.queued.zero? }
    assert_equal (1..30).map(&:to_s), @peer.stored
  end

  # The connection ends meanwhile, and they are handed on.
  def test_they_are_handed_on_in_their_order_with_their_numbers
    @peer.refuse = ->(text) { text.to_i > 2 }
    publish(1..6)
    @engine.publish("news", "x")
    @peer.begin
    wait_until { @log.string.include?("wait") && @engine.queued == 4 }
    publish([7])
    given = []
    assert_equal([5, 0], @engine.hand_on { |*words| given << words })
    assert_equal [%w[3 4 5 6 7], [3, 4, 5, 6, 8]], [given.map { |words| words[1] }, given.map(&:last)]
  end

  def test_a_new_connection_does_not_begin_anew
    held = true
    @peer.refuse = ->(_text) { held }
    publish(1..3)
    @peer.begin
    wait_until { @log.string.include?("wait") }
    @peer.instance_variable_get(:@socket).shutdown
    wait_until { @peer.connections == 2 && @log.string.include?("available again") }
    publish([4])
    held = false
    wait_until { @engine.queued.zero? }
    assert_equal %w[1 2 3 4], @peer.stored
    assert_equal 2, @log.string.scan("a rule").size
  end

  private

  def engine(**options)
    Rondo::PubSub::Nats.new("nats://127.0.0.1:#{@peer.port}", jetstream: true, log: Rondo::Logger.new(io: @log), **options)
  end

  def publish(numbers)
    numbers.each { |number| assert @engine.publish("orders", number.to_s, TERMS) }
  end
end
