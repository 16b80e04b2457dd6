# frozen_string_literal: true

# The end of a program that is no server and publishes through Redis: by itself, by exit!, by exec, and with at_exit
# blocks of its own.
# SPDX-License-Identifier: MIT

require_relative "redis_case"
require "open3"
require "support/held_port"

class RedisExitTest < RedisCase
  LIB = File.expand_path("../../../lib", __dir__)

  def setup
    super
    @redis = redis
    listener = connect
    listener.subscribe("news", false)
    listener.publish("news", "ready")
    take(1)
  end

  def test_who_leaves_by_exit_without_blocks_flushes_before
    run_program <<~RUBY
      Rondo.publish("news", "parent")
      child = fork do
        Rondo.publish("news", "child")
        Rondo::PubSub.default.flush(2)
        exit!
      end
      Process.wait(child)
    RUBY
    assert_equal %w[child parent], messages(2).sort
  end

  def test_who_waits_for_the_engine_may_leave_by_exit_without_blocks
    run_program 'exit!(Rondo.publish("news", "confirmed", confirm: 30))'
    assert_equal %w[confirmed], messages(1)
  end

  def test_who_becomes_another_program_flushes_before
    run_program <<~RUBY
      Rondo.publish("news", "before")
      Rondo::PubSub.default.flush(2)
      exec("true")
    RUBY
    assert_equal %w[before], messages(1)
  end

  # Blocks run in reverse order, so those of the program come after that of the engine.
  def test_blocks_that_are_older_than_the_engine_may_publish
    said = run_program <<~'RUBY'
      at_exit { Rondo.publish("news", "last") or warn "refused" }
      at_exit { 2.times { |number| Rondo.publish("news", "late #{number}") or warn "refused" } }
      Rondo.publish("news", "early")
    RUBY
    assert_empty said
    assert_equal ["early", "late 0", "late 1", "last"], messages(4)
  end

  def test_so_they_may_in_a_child
    said = run_program <<~'RUBY'
      name = "parent"
      at_exit { Rondo.publish("news", "last of #{name}") or warn "refused" }
      Rondo.publish("news", "first")
      Rondo::PubSub.default.flush(30)
      child = fork do
        name = "child"
        Rondo.publish("news", "child")
      end
      Process.wait(child)
    RUBY
    assert_empty said
    assert_equal ["first", "child", "last of child", "last of parent"], messages(4)
  end

  def test_an_engine_that_is_closed_stays_so
    assert_equal "refused\n", run_program(<<~RUBY)
      at_exit { Rondo.publish("news", "last") or warn "refused" }
      Rondo.publish("news", "first")
      Rondo::PubSub.default.close
    RUBY
    assert_equal %w[first], messages(1)
  end

  # All blocks together have the time of one.
  def test_what_is_lost_is_one_line
    HeldPort.open do |port|
      said = run_program(<<~RUBY, url: "redis://127.0.0.1:#{port}")
        at_exit { Rondo.publish("news", "last") or warn "refused" }
        at_exit { Rondo.publish("news", "late") or warn "refused" }
        Rondo::PubSub.default.start
      RUBY
      assert_equal 1, said.scan(/^! Redis at \S+: 1 messages were not sent$/).size, said
      assert_equal 1, said.scan(/^! Redis at \S+: the program ends: nothing more is sent$/).size, said
      assert_equal 1, said.scan(/^refused$/).size, said
    end
  end

  def test_a_thread_that_goes_on_publishing_keeps_no_program_from_its_end
    run_program <<~RUBY
      sent = Thread::Queue.new
      Thread.new { loop { sent << Rondo.publish("news", "again") } }
      sent.pop
    RUBY
    assert_equal %w[again], messages(1)
  end

  private

  def messages(count)
    take(count).map(&:last)
  end

  # @return [String] what it has said
  def run_program(text, url: @redis.url)
    program = "Rondo::PubSub.default = Rondo::PubSub::Redis.new(#{url.inspect})\n#{text}"
    said, status = Open3.capture2e(RbConfig.ruby, "-I", LIB, "-r", "rondo", "-e", program)
    assert_predicate status, :success?, said
    said
  end
end
