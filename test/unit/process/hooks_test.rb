# frozen_string_literal: true

# Hooks of the configuration: in order, with their arguments. An error in a hook is one line of the log.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/config/configuration"
require "rondo/process/hooks"

class HooksTest < Minitest::Test
  def setup
    @configuration = Rondo::Configuration.new
    @lines = []
    @hooks = Rondo::Hooks.new(@configuration, self)
  end

  # As a log.
  def error(line)
    @lines << line
  end

  def test_in_order_with_what_they_get
    seen = []
    2.times { |n| @configuration.hooks[:before_worker_boot] << ->(index) { seen << [n, index] } }
    @hooks.call(:before_worker_boot, 7)
    @hooks.call(:before_fork)
    assert_equal [[0, 7], [1, 7]], seen
  end

  def test_what_raises_is_one_line
    [-> { raise "no\nway" }, -> { raise NotImplementedError, "no" }, -> { require "nowhere/at/all" }].each do |hook|
      @configuration.hooks[:before_fork].replace([hook])
      error = assert_raises(Rondo::ConfigurationError) { @hooks.call(:before_fork) }
      assert_match(/\Abefore_fork raised at .*:\d+: .* \(\w+\)\z/, error.message)
    end
  end

  # Blocks take what they want; a lambda, or a method, takes what it says.
  def test_a_wrong_number_of_arguments
    @configuration.hooks[:before_worker_boot] << proc { |index, more| assert_equal [7, nil], [index, more] } << proc {}
    @hooks.call(:before_worker_boot, 7)
    [-> {}, ->(_index, _more) {}, method(:setup)].each do |hook|
      @configuration.hooks[:before_worker_boot].replace([hook])
      @hooks.try(:before_worker_boot, 7)
      assert_match(/\A! before_worker_boot raised at #{__FILE__}:\d+: wrong number of arguments .* \(ArgumentError\)\z/, @lines.pop)
    end
  end

  def test_what_goes_on_all_the_same
    @configuration.hooks[:after_booted] << -> { raise "no" }
    @hooks.try(:after_booted)
    assert_match(/\A! after_booted raised at .*: no \(RuntimeError\)\z/, @lines.fetch(0))
  end

  # The copy would be the server a second time, whatever it does after the fork.
  def test_a_fork_without_a_block_ends_its_copy
    { -> { @child = fork } => 1, -> { (@child = fork) || raise("no") } => 1, -> { (@child = fork) || exit(3) } => 3 }.each do |hook, status|
      @configuration.hooks[:after_booted].replace([hook])
      _, told = capture_subprocess_io do
        @hooks.try(:after_booted)
        assert_equal [status], [Process.wait2(@child).last.exitstatus]
      end
      words = "! after_booted: it has forked without a block; the copy of the server ends\n"
      assert_equal [status == 1 ? words : "", []], [told, @lines]
    end
  end

  def test_the_next_block_is_called_after_one_that_raises
    seen = []
    @configuration.hooks[:before_thread_start].push(->(_) { raise "no" }, ->(given) { seen << given })
    @hooks.of_server.fetch(:thread_start).call
    assert_equal [[1, 5]], (seen.map { |threads| [threads.min_threads, threads.max_threads] })
    assert_raises(Rondo::Error) { seen.first.update_thread_pool_min_max(min: 1, max: 2) }
    assert_match(/\A! before_thread_start raised/, @lines.fetch(0))
    assert_equal [:thread_start], @hooks.of_server.keys
  end

  def test_those_with_a_deadline
    @configuration.hooks[:after_stopped].push(-> { exit(3) }, -> { flunk })
    assert @hooks.try_for(30, :after_stopped)
    assert_equal ["! after_stopped called exit, which ends nothing there"], @lines
    ended = Queue.new
    @configuration.hooks[:before_restart] << lambda { |_|
      begin
        sleep
      ensure
        ended << :ended
      end
    }
    refute @hooks.try_for(0.01, :before_restart, :launcher)
    assert_equal :ended, ended.pop
    assert_equal "! before_restart did not return within 0.01 s, and was ended", @lines.last
    assert @hooks.try_for(0, :before_refork)
  end

  # The methods of the real one.
  def test_how_a_worker_has_ended
    [-> { exit!(0) }, -> { exit!(7) }, -> { Process.kill("KILL", Process.pid) }, -> { Process.kill("USR1", Process.pid) }].each do |ends|
      _, real = Process.wait2(fork(&ends))
      worker = Rondo::EndedWorker.new(index: 3, pid: real.pid, phase: 2, status: real.to_i, age: 60)
      status = worker.process_status
      %i[pid to_i exitstatus termsig stopsig exited? signaled? stopped? coredump? success? to_s].each do |name|
        expected = real.public_send(name)
        expected.nil? ? assert_nil(status.public_send(name), name) : assert_equal(expected, status.public_send(name), name)
      end
      assert_equal status, real
      assert_equal [3, 2], [worker.index, worker.phase]
      assert_in_delta 60, worker.uptime, 30
      assert_includes worker.inspect, status.to_s
    end
  end

  def test_whoever_cannot_wait_for_ever
    released = Queue.new
    done = Queue.new
    @configuration.hooks[:before_drain] << -> { done << [Thread.current, released.pop] }
    @hooks.try_within(0.01, :before_drain)
    assert_empty done
    released << :now
    thread, word = done.pop
    refute_equal Thread.current, thread
    assert_equal :now, word
  end
end
