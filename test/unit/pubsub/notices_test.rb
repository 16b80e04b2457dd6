# frozen_string_literal: true

# How an engine learns of subscriptions if it raises, is slow, or its thread is gone.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "stringio"

class NoticesTest < Minitest::Test
  # Records its calls; raises for the channels of a list.
  class Told
    attr_reader :said, :bad
    attr_writer :cured_after # this many errors

    def initialize
      @said = []
      @bad = []
    end

    def subscribe(channel, _is_pattern) = say("+#{channel}", channel)
    def unsubscribe(channel, _is_pattern) = say("-#{channel}", channel)

    private

    def say(word, channel)
      @said << word
      return unless @bad.include?(channel)

      @bad.clear if (@errors = @errors.to_i + 1) == @cured_after
      raise "my own fault"
    end
  end

  def setup
    @engine = Told.new
    @log = StringIO.new
  end

  def notices(**options)
    Rondo::PubSub::Notices.new(@engine, **options) { Rondo::Logger.new(io: @log) }
  end

  def test_what_comes_and_goes_is_not_told
    notices = notices()
    100_000.times { |n| notices.want("guest #{n}", false, true) }
    100_000.times { |n| notices.want("guest #{n}", false, false) }
    assert_nil notices.pause
    notices.want("a", false, true)
    notices.want("a", true, true)
    notices.notify_due
    notices.want("a", false, false)
    notices.want("a", false, true)
    notices.notify_due
    assert_equal %w[+a +a], @engine.said
  end

  def test_a_call_that_raised_is_repeated
    notices = notices(retry_after: 0)
    @engine.bad << "bad"
    notices.want("bad", false, true)
    notices.want("good", false, true)
    @engine.cured_after = 3
    notices.notify_due
    assert_equal %w[+bad +good +bad +bad +bad], @engine.said
    assert_nil notices.pause
    assert_equal 1, @log.string.scan("my own fault").size # at most a line a second
    assert_includes @log.string, "! NoticesTest::Told#subscribe: "
  end

  def test_whoever_raised_may_have_done_it_all_the_same
    notices = notices(retry_after: 3600)
    @engine.bad << "c"
    notices.want("c", false, true)
    notices.notify_due
    assert_operator notices.pause, :>, 3000
    notices.want("c", false, false)
    notices.notify_due
    notices.want("c", false, true)
    @engine.bad.clear
    notices.notify_due
    notices.want("c", false, false)
    notices.notify_due
    notices.want("c", false, false)
    notices.notify_due
    assert_equal %w[+c -c +c -c], @engine.said
    assert_nil notices.pause
  end

  def test_an_engine_that_does_not_come_back_is_named_once
    gate = Thread::Queue.new
    began = Thread::Queue.new
    @engine.define_singleton_method(:subscribe) { |*| (began << true) && gate.pop }
    notices = notices(own_thread: true, slow_after: 0)
    notices.want("a", false, true)
    began.pop
    notices.want("b", false, true)
    notices.want("c", false, true)
    refute notices.flush(0)
    assert_equal 1, @log.string.scan(/^! NoticesTest::Told has not returned .* for 0 s: 1 more notices wait$/).size
    gate.close
    assert notices.flush(30)
    assert_match(/^- NoticesTest::Told returned after/, @log.string)
  ensure
    gate.close
    notices.end
  end

  # The call may have reached the engine before it lost its state, or after. It is unknown, so the last change is sent
  # again.
  def test_a_reset_while_the_engine_is_told
    { [] => "+a -a", [["a", false]] => "+a +a" }.each do |interests, said|
      @engine = Told.new
      notices = notices()
      during = [-> { notices.want("a", false, false) }, -> { notices.reset(interests) }]
      @engine.define_singleton_method(:subscribe) { |*words| super(*words) || during.shift(2).each(&:call) }
      notices.want("a", false, true)
      notices.notify_due
      assert_equal said, @engine.said.join(" ")
      notices.want("a", false, true)
      notices.notify_due
      assert_equal "+a", @engine.said.last # it is known, or was told just now
    end
  end

  class BeyondStandardError < Exception # rubocop:disable Lint/InheritException
    def message = raise("no message either")
  end

  # No change comes after that, so no change would start the thread again.
  def test_an_engine_that_raises_anything_keeps_its_thread
    [BeyondStandardError, NoMemoryError, SystemStackError, Interrupt].each do |error|
      @engine = Told.new
      raised = 0
      @engine.define_singleton_method(:subscribe) { |*words| (raised += 1) == 1 ? raise(error) : super(*words) }
      notices = notices(own_thread: true, retry_after: 0)
      notices.want("a", false, true)
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
      Thread.pass until @engine.said.any? || Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      assert_equal %w[+a], @engine.said
      assert_includes @log.string, error.name
    ensure
      notices.end
    end
  end

  def test_a_thread_that_was_killed_leaves_nothing_untold
    notices = notices(own_thread: true)
    gate = Thread::Queue.new
    threads = Thread::Queue.new
    @engine.define_singleton_method(:subscribe) { |*| (threads << Thread.current) && gate.pop }
    notices.want("a", false, true)
    threads.pop.kill.join
    @engine.singleton_class.remove_method(:subscribe)
    notices.want("b", false, true)
    assert notices.flush(30)
    assert_equal %w[+a +b], @engine.said.sort
  ensure
    notices.end
  end

  def test_a_child_process_goes_on_with_a_thread_of_its_own
    notices = notices(own_thread: true)
    notices.want("a", false, true)
    assert notices.flush(30)
    pid = fork do
      notices.want("b", false, true)
      exit!(notices.flush(30) && @engine.said == %w[+a +b] ? 0 : 1)
    end
    assert Process.wait2(pid).last.success?
  ensure
    notices.end
  end
end
