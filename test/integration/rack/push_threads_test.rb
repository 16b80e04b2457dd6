# frozen_string_literal: true

# rack.upgrade with application threads: other threads write to clients and close them, and clients come and go. The
# callbacks of each connection run one at a time, in order, and on_close runs once and last. The server is in this
# process, so that the test runs under ThreadSanitizer, too.
# SPDX-License-Identifier: MIT

require_relative "rack_case"
require "support/websocket_peer"

class PushThreadsTest < RackCase
  F = WebsocketFrames
  CLIENTS = 12
  MESSAGES = 150
  WRITERS = 3

  # The callbacks of one connection, and whether two of them ever ran at the same time.
  class Handler
    attr_reader :told, :faults

    def initialize(clients)
      @clients = clients
      @told = []
      @faults = []
      @busy = false
    end

    def on_open(client) = note(:open) { @clients << client }
    def on_message(_client, data) = note(Integer(data)) { nil }
    def on_drained(_client) = note(:drained) { nil }
    def on_close(client) = note(:close) { @faults << "open in on_close" if client.open? }

    private

    def note(event)
      @faults << "#{event} beside another" if @busy
      @busy = true
      @told << event
      Thread.pass
      yield
      @busy = false
    end
  end

  # Numbers what it writes to each client.
  class Writer
    def initialize(name, clients)
      @thread = Thread.new { write_on(name, clients) }
    end

    def stop
      @stopped = true
      @thread.value
    end

    private

    def write_on(name, clients)
      numbers = Hash.new(0)
      random = Random.new(name)
      until @stopped
        client = clients.sample(random: random) or next Thread.pass
        numbers[client] += 1 if client.write("#{name} #{numbers[client]}")
        client.close(3000, "by #{name}") if numbers[client] == 40 && random.rand(4).zero?
        Thread.pass
      end
    end
  end

  def start_server(handlers, clients)
    start(lint: false, min_threads: 4, max_threads: 4) do |env|
      handlers << (env["rack.upgrade"] = Handler.new(clients))
      [0, {}, []]
    end
  end

  # Sends numbers, and ends by itself, in one way or the other, if the server did not end it before.
  # @return [Array<String>] the messages it got
  def converse(url, name)
    peer = WebsocketPeer.new(url)
    heard = []
    reader = Thread.new { read(peer, heard) }
    begin
      MESSAGES.times { |number| peer.say(number.to_s) }
      name.even? ? peer.send_bytes(F.close) : peer.half_close
    rescue SystemCallError
      nil # another thread closed it
    end
    reader.value
    heard
  ensure
    peer&.close
  end

  def read(peer, heard)
    while (frame = peer.next_frame)
      heard << frame.payload if frame.opcode == F::TEXT
      peer.send_bytes(F.frame(F::CLOSE, frame.payload)) if frame.opcode == F::CLOSE
    end
  rescue SystemCallError
    nil
  end

  def test_callbacks_come_one_by_one
    handlers = Queue.new
    clients = []
    running = start_server(handlers, clients)
    writers = Array.new(WRITERS) { |name| Writer.new(name, clients) }
    talks = Array.new(CLIENTS) { |name| Thread.new { converse(running.url, name) } }.map { |talk| value_of(talk) }
    writers.each(&:stop)
    told = Array.new(CLIENTS) { take(handlers, "a handler") }
    told.each { |handler| eventually("a close") { handler.told.include?(:close) } }
    talks.each { |heard| check_heard(heard) }
    told.each { |handler| check_told(handler) }
    assert(clients.none?(&:open?))
    assert(clients.none? { |client| client.write("late") })
  end

  def check_told(handler)
    assert_empty handler.faults
    assert_equal :open, handler.told.first
    assert_equal :close, handler.told.last
    assert_equal 1, handler.told.count(:close)
    numbers = handler.told.grep(Integer)
    assert_equal (0...numbers.size).to_a, numbers
  end

  # The messages of each thread come in their order, and without a gap.
  def check_heard(heard)
    heard.map(&:split).group_by(&:first).each_value do |lines|
      assert_equal (0...lines.size).to_a, lines.map { |_, number| Integer(number) }
    end
  end
end
