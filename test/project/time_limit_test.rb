# frozen_string_literal: true

# Tests that do not end, in a process of their own.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"

class TimeLimitTest < Minitest::Test
  def test_a_test_that_waits_for_ever_fails_and_the_next_one_runs
    output, status = run_tests(limit: 4, answer: 60, methods: <<~RUBY)
      def test_a = sleep
      def test_b = assert(true)
    RUBY
    assert_equal 1, status.exitstatus
    assert_match(/^StuckTest#test_a took longer than 4 s$/, output)
    assert_match(/^ +-e:\d+:in [`'](StuckTest#)?test_a'$/, output)
    assert_match(/TimeLimit::Expired: longer than 4 s/, output)
    assert_match(/^2 runs, 1 assertions, 0 failures, 1 errors/, output)
  end

  # It keeps the GVL.
  def test_a_test_that_waits_in_c_ends_the_process
    output, status = run_tests(limit: 4, answer: 5, methods: <<~RUBY)
      def test_a
        mutex = Fiddle::Pointer.malloc(64)
        mutex[0, 64] = "\\0" * 64
        lock = Fiddle::Function.new(Fiddle.dlopen(nil)["pthread_mutex_lock"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT,
                                    need_gvl: true)
        2.times { lock.call(mutex) }
      end
    RUBY
    refute_predicate status, :success?
    assert_match(/^StuckTest#test_a took longer than 4 s, and Ruby does not answer$/, output)
    assert_match(/Segmentation fault/, output)
  end

  private

  def run_tests(limit:, answer:, methods:)
    program = <<~RUBY
      require "test_helper"
      require "fiddle"
      class StuckTest < Minitest::Test
        def self.test_order = :alpha
        #{methods}
      end
    RUBY
    limits = { "RONDO_TEST_LIMIT" => limit.to_s, "RONDO_TEST_ANSWER" => answer.to_s }
    Open3.capture2e(limits, RbConfig.ruby, "-I#{File.expand_path("..", __dir__)}", "-e", program)
  end
end
