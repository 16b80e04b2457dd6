# frozen_string_literal: true

# A storm of clients that all come back at once, while the application and the engine are stuck. In the end the engine
# knows exactly the channels that exist, and no others.
# SPDX-License-Identifier: MIT

require "set"
require_relative "rack_case"
require_relative "../../support/websocket_peer"

class EngineStormTest < RackCase
  CLIENTS = 200
  # Many times the capacity that one event queue of max_pending_bytes had.
  CHANNELS = 100

  # Subscribes on request, once the gate is open.
  class Crowd
    class << self
      attr_accessor :gate, :began
    end

    def on_message(client, data)
      Crowd.began << data
      Crowd.gate.pop
      CHANNELS.times { |number| client.subscribe("room:#{data}:#{number}") }
    end
  end

  # Records its channels, and waits at its gate before the first one.
  class Engine < Rondo::PubSub::Engine
    attr_reader :known, :gate, :mistakes

    def initialize
      super
      @known = Set.new
      @mistakes = []
      @gate = Thread::Queue.new
    end

    def subscribe(channel, _is_pattern)
      @gate.pop
      @mistakes << "+#{channel}" unless @known.add?(channel)
    end

    def unsubscribe(channel, _is_pattern)
      @mistakes << "-#{channel}" unless @known.delete?(channel)
    end

    def publish(*) = true
  end

  def setup
    super
    Crowd.gate = Thread::Queue.new
    Crowd.began = Thread::Queue.new
    Rondo::PubSub.attach(@engine = Engine.new)
  end

  def teardown
    @engine.gate.close
    Crowd.gate.close
    super
    Rondo::PubSub.detach(@engine)
  end

  def connect_crowd
    peers = Array.new(CLIENTS) { WebsocketPeer.new(@running.last.url) }
    @clients.concat(peers)
    peers.each_with_index { |peer, number| peer.say(number.to_s) }
  end

  def channels_of(range)
    range.flat_map { |number| Array.new(CHANNELS) { |channel| "room:#{number}:#{channel}" } }.to_set
  end

  def leave(peers)
    peers.each(&:close)
    @clients -= peers
  end

  def test_a_storm
    start(->(env) { (env["rack.upgrade"] = Crowd.new) && [200, {}, []] }, lint: false, min_threads: 2, max_threads: 2)
    peers = connect_crowd
    2.times { take(Crowd.began, "threads that are stuck") }
    Crowd.gate.close
    eventually("the storm") { Rondo::PubSub.interests.size > CLIENTS * CHANNELS / 2 }
    leave(peers.pop(CLIENTS / 2))
    @engine.gate.close
    expected = channels_of(0...(CLIENTS / 2))
    eventually("exactly what is left") { @engine.known == expected }
    leave(peers)
    eventually("nobody is left") { @engine.known.empty? }
    assert_empty @engine.mistakes
  end
end
