# frozen_string_literal: true

# The master's loop: descriptors, timers, signals, other threads; and blocks that raise.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/process/process_loop"

class ProcessLoopTest < Minitest::Test
  # Records the errors that the loop logged.
  class Log
    attr_reader :lines

    def error(line)
      (@lines ||= []) << line
    end
  end

  def setup
    @log = Log.new
    @loop = Rondo::ProcessLoop.new(@log)
    @seen = []
  end

  def run_until_seen(count)
    @loop.after(10) { raise Minitest::Assertion, "nothing happened: #{@seen}" }
    @loop.run_until { @seen.size >= count }
  end

  def test_timers_in_order
    @loop.after(0.02) { @seen << :second }
    @loop.after(0.01) { @seen << :first }
    @loop.cancel(@loop.after(0) { @seen << :never })
    run_until_seen(2)
    assert_equal %i[first second], @seen
  end

  # The loop may come late to both.
  def test_timers_in_order_when_they_are_late
    limit = Rondo::ProcessLoop.now + 0.02
    @loop.after(0.01) { @seen << :second }
    @loop.after(0) { @seen << :first }
    nil until Rondo::ProcessLoop.now > limit
    run_until_seen(2)
    assert_equal %i[first second], @seen
  end

  def test_a_timer_that_comes_again
    @loop.every(0.001) { @seen << :tick }
    run_until_seen(3)
  end

  def test_descriptors
    reader, writer = IO.pipe
    @loop.watch(reader) { @seen << reader.read_nonblock(1) }
    writer.write("ab")
    run_until_seen(2)
    assert_equal %w[a b], @seen
    @loop.unwatch(reader)
    writer.write("c")
    @loop.after(0) { @seen << :nothing_else }
    run_until_seen(3)
    assert_equal :nothing_else, @seen.last
  ensure
    [reader, writer].each { |io| io&.close }
  end

  def test_signals_and_other_threads
    @loop.on_signals(%w[USR2 NONE]) { |name| @seen << name }
    Process.kill("USR2", Process.pid)
    thread = Thread.new { @loop.post { @seen << Thread.current } }
    run_until_seen(2)
    assert_equal ["USR2", Thread.current].to_set, @seen.to_set
  ensure
    @loop.restore_signals
    thread&.join
  end

  def test_signals_that_are_not_given_back
    @loop.on_signals(%w[USR1 USR2]) { |name| @seen << name }
    @loop.restore_signals(except: ["USR2"])
    Process.kill("USR2", Process.pid)
    run_until_seen(1)
    assert_equal ["USR2"], @seen
  ensure
    trap("USR2", "DEFAULT")
  end

  def test_a_block_that_raises_ends_nothing
    @loop.post { raise "on purpose" }
    @loop.after(0.01) { @seen << :afterwards }
    run_until_seen(1)
    assert_match(/on purpose/, @log.lines.fetch(0))
  end
end
