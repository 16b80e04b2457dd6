# frozen_string_literal: true

# Tasks and timers of a server of this process while everything that can be collected or moved is; see server_test.rb
# beside it.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "timeout"

class CollectedTasksTest < Minitest::Test
  PATIENCE = 60

  def setup
    @done = Queue.new
  end

  # Nothing but the server, or the list of what waits for one, knows the blocks.
  def test_blocks_and_handles
    ask("before")
    serve do
      ask("beside")
      kept = Rondo.run_every(60_000) { flunk }
      GC.start
      assert_equal(%w[before beside].flat_map { |name| Array.new(4) { |n| "#{name} #{n}" } }, Array.new(8) { take }.sort)
      refute_predicate kept, :over?
      assert kept.cancel
    end
  end

  def test_a_handle_outlives_its_server
    task = nil
    serve { task = Rondo.run_after(60_000) { flunk } }
    GC.start
    assert_predicate task, :over?
    refute task.cancel
  end

  private

  def ask(name)
    Rondo.run { @done << "#{name} 0" }
    Rondo.run_after(1) { @done << "#{name} 1" }
    count = 1
    Rondo.run_every(1, 2) { @done << "#{name} #{count += 1}" }
  end

  def take
    Timeout.timeout(PATIENCE) { @done.pop }
  end

  def serve
    server = Rondo::Server.new(->(_env) { [200, {}, []] }, environment: "test")
    server.listen("tcp://127.0.0.1:0")
    thread = Thread.new { server.run }
    yield
  ensure
    server&.stop
    thread&.join(PATIENCE)
  end
end
