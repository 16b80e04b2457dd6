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

  def test_what_goes_on_all_the_same
    @configuration.hooks[:after_booted] << -> { raise "no" }
    @hooks.try(:after_booted)
    assert_match(/\A! after_booted raised at .*: no \(RuntimeError\)\z/, @lines.fetch(0))
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
