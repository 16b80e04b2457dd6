# frozen_string_literal: true

# Connections that are over leave nothing behind: no handlers, clients, envs, descriptors, memory. The test opens a few
# thousand of them, or as many as RONDO_TEST_CONNECTS says.
# SPDX-License-Identifier: MIT

require "test_helper"
require "tmpdir"
require "support/server_process"
require "support/websocket_peer"

class PushLeaksTest < Minitest::Test
  F = WebsocketFrames
  # ASan keeps freed memory for a while.
  MEMORY_KIB = ENV.fetch("LD_PRELOAD", "").include?("asan") ? 256 * 1024 : 4096
  CONNECTS = Integer(ENV.fetch("RONDO_TEST_CONNECTS", "3000"))
  # This many may stay: the conservative collector finds some on a stack.
  FEW = 20
  APP = <<~RUBY
    Mark = Class.new
    class Handler
      def on_open(client) = (@client = client)
      def on_message(client, data) = data == "raise" ? raise("x") : client.write(data)
    end
    run lambda { |env|
      if env["rack.upgrade?"]
        env["test.mark"] = Mark.new
        env["rack.upgrade"] = Handler.new
        next [0, {}, []]
      end
      GC.start
      [200, {}, [[Handler, Rondo::Client, Mark].map { |kind| ObjectSpace.each_object(kind).count }.join(" ")]]
    }
  RUBY

  # The ways in which a connection ends.
  ENDS = [
    ->(peer) { peer.say("hello").hear && peer.send_bytes(F.close).hear_close },
    ->(peer) { peer.say("hello").hear && peer.close },
    ->(peer) { peer.say("raise").hear_close },
    ->(peer) { peer.send_bytes(F.frame(3)).hear_close },
    ->(peer) { peer.send_bytes(F.frame(F::TEXT, "half", fin: false)).reset },
    ->(peer) { peer.say("unread" * 1000).reset },
    :reset.to_proc
  ].freeze

  def connect(server, number)
    peer = WebsocketPeer.new(server.url)
    ENDS[number % ENDS.size].call(peer)
  ensure
    peer&.close
  end

  def alive(server)
    RawClient.open(server.url) do |client|
      client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      return client.response.body.split.map { |count| Integer(count) }
    end
  end

  # Waits until the ends were delivered.
  def assert_gone(server)
    wait_until("no more than #{FEW} of a kind stay") { alive(server).max <= FEW }
  end

  def wait_until(what)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ServerProcess::DEADLINE
    until yield
      flunk "this never came: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, 0.05)
    end
  end

  def test_nothing_stays
    Dir.mktmpdir("rondo-leaks") do |folder|
      File.write(File.join(folder, "config.ru"), APP)
      ServerProcess.run(File.join(folder, "config.ru")) do |server|
        alive(server) # everything that it opens once is open
        descriptors = server.descriptors
        (CONNECTS / 2).times { |number| connect(server, number) }
        assert_gone(server)
        before = server.resident_kib
        (CONNECTS - CONNECTS / 2).times { |number| connect(server, number) }
        assert_gone(server)
        assert_operator server.resident_kib - before, :<, MEMORY_KIB, "KiB more than after the first half"
        wait_until("descriptors are given back") { server.descriptors <= descriptors + 2 }
      end
    end
  end
end
