# frozen_string_literal: true

# What holds for each client that lets other fibers run while it waits for its server. The server is a real one with a
# *gate*: it keeps answers back until it is told to give them, and counts those that wait. So nothing depends on time:
# all calls of all fibers are in the server at once, or the test does not end.
#
# A test class includes this, and has:
#
#   gate              the server: inside, open, shut, kill_session(id), crash, start
#   connect           a client
#   enter(client, n)  a call that waits at the gate; returns n * 7
#   session_of(client, n)   the id of its connection in the server
#   leave(client)     closes the client
#   lost_errors          the classes of errors that a lost connection raises
# SPDX-License-Identifier: MIT

require "rondo"
require "timeout"

module WaitingClients
  PATIENCE = 60
  MANY = 20

  class << self
    # For any test of fibers: runs the block in Rondo.fibers on a thread of its own.
    # @return what the block returns
    def in_fibers(&block)
      thread = Thread.new do
        Thread.current.report_on_exception = false
        Rondo.fibers(limit: 200, &block)
      end
      raise "the fibers do not end" unless thread.join(PATIENCE)

      thread.value
    ensure
      thread&.kill
    end

    # All threads that look up names are busy, until another fiber ends that.
    # @yield a call that looks up a name; returns true
    # @return [Array<Symbol>] :call and :other, in the order in which they ended
    def order_of_lookup(&call)
      busy = Queue.new
      ended = []
      in_fibers do |all|
        Rondo::Offload::THREADS.times { all.start { Rondo.offload { busy.pop } } }
        all.start { call.call && (ended << :call) }
        ended << :other
      ensure
        busy.close
      end
      ended
    end

    # On the caller's thread; not in a fiber.
    def wait_until
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
      until yield
        raise Minitest::Assertion, "it did not happen" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit

        Kernel.sleep 0.001
      end
    end

    # @return [Class, nil] of the error that the block raises
    def error_of
      yield
      nil
    rescue StandardError => e
      e.class
    end

    # @return [Integer] how many this process holds, without files: a sanitizer opens its report whenever it has to warn
    def descriptors
      Dir.children("/proc/self/fd").count { |name| !file?("/proc/self/fd/#{name}") }
    end

    private

    def file?(path)
      File.readlink(path).start_with?("/")
    rescue Errno::ENOENT # the descriptor with which the folder is read
      true
    end
  end

  # Opens the gate at the right time.
  module Keeper
    private

    # Runs fibers. When that many calls are inside, and while they are, another fiber of the same thread goes on, a
    # thread calls `first`, and then opens the gate.
    def with_keeper(inside:, first: nil, last: -> { gate.open }, &block)
      gate.shut
      WaitingClients.wait_until { gate.inside.zero? }
      ticks = 0
      keeper = Thread.new { keep(inside, -> { ticks }, first, last) }
      keeper.report_on_exception = false
      WaitingClients.in_fibers do |all|
        all.start { ((ticks += 1) && sleep(0.001)) while keeper.alive? }
        block.call(all)
      end
    ensure
      keeper&.value
    end

    def keep(inside, ticks, first, last)
      WaitingClients.wait_until { gate.inside >= inside }
      seen = ticks.call
      WaitingClients.wait_until { ticks.call > seen }
      first&.call
    ensure
      last&.call
    end
  end
  include Keeper

  def test_many_wait_at_once
    leaves_no_descriptors do
      results = with_keeper(inside: MANY) { |all| all.map(1..MANY) { |n| call(n) } }
      assert_equal (1..MANY).map { |n| n * 7 }, results
    end
  end

  def test_descriptors_above_1024
    wanted = 1100
    skip "at most #{Process.getrlimit(:NOFILE)[0]} descriptors" if Process.getrlimit(:NOFILE)[0] < wanted + 200
    fillers = File.open(File::NULL) { |null| Array.new(wanted) { null.dup } }
    assert_equal([7, 14], with_keeper(inside: 2) { |all| all.map(1..2) { |n| call(n) } })
  ensure
    fillers&.each(&:close)
  end

  def test_one_connection_is_lost
    leaves_no_descriptors do
      lost = Queue.new
      session = nil
      lose = -> { gate.kill_session(session) && lost.pop }
      results = with_keeper(inside: 3, first: lose) do |all|
        all.map(1..3) do |n|
          next call(n) unless n == 2

          call_or_fail(n, *lost_errors) { |client| session = session_of(client, n) }.tap { lost << true }
        end
      end
      assert_equal [7, :failed, 21], results
    end
  end

  def test_one_call_takes_too_long
    leaves_no_descriptors(to_gc: true) do
      over = Queue.new
      results = with_keeper(inside: 2, first: -> { over.pop }) do |all| # its time may be up on its way
        all.map(1..3) do |n|
          next call(n) unless n == 2

          call_or_fail(n, Timeout::Error, limit: 0.3).tap { over << true }
        end
      end
      assert_equal [7, :failed, 21], results
    end
  end

  def test_the_server_dies
    results = with_keeper(inside: 3, first: -> { gate.crash }, last: nil) do |all|
      all.map(1..3) { |n| call_or_fail(n, *lost_errors) }
    end
    assert_equal %i[failed] * 3, results
  ensure
    gate.start
  end

  private

  # @param to_gc [Boolean] a call is cut in the middle: Timeout ends it by what `rescue` does not see, so a library such as
  #   net/http leaves a socket that was on its way to the garbage collector
  def leaves_no_descriptors(to_gc: false)
    gate.shut
    before = WaitingClients.descriptors
    yield
    leave_all
    WaitingClients.wait_until { WaitingClients.descriptors <= before || (GC.start if to_gc) }
  end

  # Closes what clients share.
  def leave_all = nil

  def call(number, limit: nil)
    client = connect
    yield client if block_given?
    limit ? Timeout.timeout(limit) { enter(client, number) } : enter(client, number)
  ensure
    leave(client) if client
  end

  def call_or_fail(number, *errors, **options, &block)
    call(number, **options, &block)
  rescue *errors
    :failed
  end
end
