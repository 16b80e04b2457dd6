# frozen_string_literal: true

# The end of a program that is no server and publishes through Redis: by itself, by exit!, by exec, and with at_exit
# blocks of its own.
# SPDX-License-Identifier: MIT

require_relative "redis_case"
require "open3"

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
    run_program <<~'RUBY'
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
    run_program <<~'RUBY'
      Rondo.publish("news", "before")
      Rondo::PubSub.default.flush(2)
      exec("true")
    RUBY
    assert_equal %w[before], messages(1)
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
