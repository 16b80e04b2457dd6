# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/rails/cable/cable"
require "timeout"

# Names of this process alone, and the events that connections get by them.
class RailsCableEventsTest < Minitest::Test
  Socket = Rondo::Rails::Cable::Socket

  def setup
    @server = Rondo::Server.new(->(_) { [200, {}, []] }).tap { |server| server.listen("tcp://127.0.0.1:0") }
    @thread = Thread.new { @server.run }
    Timeout.timeout(30) { Thread.pass until Rondo::PubSub.serving? }
  end

  def teardown
    @server.stop(force: true)
    @thread.join
  end

  # Who lets clients choose patterns does not tell them the names.
  def test_no_pattern_matches_a_private_name
    heard = Queue.new
    patterns = ["*", "?rondo*", "\0rondo[:/]*", "[^x]rondo/cable/secret"]
    patterns.each { |pattern| Rondo.subscribe(pattern, match: :redis) { |channel, _| heard << channel } }
    ["\0rondo/cable/secret", "\0rondo:cable:secret:room", "plain"].each { |name| Rondo.publish(name, "x") }
    assert_equal "plain", Timeout.timeout(30) { heard.pop }
  ensure
    patterns.each { |pattern| Rondo.unsubscribe(pattern, match: :redis) }
  end

  # AnyCable has connections of Rails with a socket of its own.
  def test_a_socket_of_another_library
    foreign = Struct.new(:websocket, :socket).new(Object.new, Object.new)
    assert_nil foreign.dup.extend(Rondo::Rails::Cable::Events).of_server
    assert_nil foreign.dup.extend(Rondo::Rails::Cable::NextConnection).of_server
  end

  # Stands for the client; while the first thread subscribes, another one has an event.
  class Client
    attr_reader :names

    def initialize(&other)
      @other = other
      @names = []
    end

    def open? = true

    def subscribe(name)
      @second ||= Thread.new(&@other).tap { |thread| Thread.pass until thread.stop? }
      @names << name
    end

    def wait = @second.join
  end

  # Codes that a server may send are those of browsers; the rest is the protocol's own.
  def test_codes_of_a_close
    closed = []
    client = Object.new.tap { |one| one.define_singleton_method(:close) { |*how| closed << how } }
    socket = Socket.allocate.tap { |one| one.instance_variable_set(:@client, client) }
    [999, 1001, 1011, 2999, 5000].each do |code|
      error = assert_raises(ArgumentError) { socket.close(code) }
      assert_equal "the code must be 1000, or from 3000 to 4999, not #{code}", error.message
    end
    assert_empty closed
    socket.close
    [1000, 3000, 4999].each { |code| socket.close(code, "why") }
    assert_equal [[1000, ""], [1000, "why"], [3000, "why"], [4999, "why"]], closed
  end

  def test_two_threads_with_the_first_event_of_a_connection
    socket = Socket.allocate
    client = Client.new { socket.perform { nil } }
    socket.instance_variable_set(:@client, client)
    assert socket.perform { nil }
    client.wait
    assert_equal [socket.instance_variable_get(:@jobs_name)], client.names
    assert_equal 2, socket.instance_variable_get(:@jobs).size
  end
end
