# frozen_string_literal: true

# Who publishes learns whether the engine has the message: its id in a stream, and what is known while Redis is away.
# SPDX-License-Identifier: MIT

require_relative "streams_case"
require "support/confirming"

class StreamsConfirmTest < StreamsCase
  include Confirming
  include Confirming::Tests

  # What publish says is all there is to know.
  def test_without_an_engine_outside_it_is_what_publish_says
    %w[0 2].each do |workers|
      a = start("-w", workers)
      assert_equal "true", ask(a, "kept:x", "one")
      assert_equal "true true", ask(a, "kept:x", "one", "block")
      a.stop
    end
  end

  def test_an_engine_that_cannot_say_it
    write "rondo.rb", <<~'RUBY'
      pubsub_engine do
        Class.new do
          def subscribe(*) = nil
          def unsubscribe(*) = nil
          def publish(channel, message) = warn("published #{message}") || true
        end.new
      end
    RUBY
    %w[0 2].each do |workers|
      a = start("-w", workers, "-C", "rondo.rb")
      assert_match(/Rondo::Error: the pub.sub engine cannot say/, ask(a, "x", "not-published"), workers)
      a.stop
      refute_includes a.log, "published not-published"
    end
  end

  # It is sent again where the answer was lost. Redis knows the number of the last message that it wrote.
  def test_a_message_that_redis_has_written_before
    a = server
    assert_match(/\A\d{16}\z/, ask(a, "kept:x", "one"))
    publisher = @redis.cli("KEYS", "{rondo}:by:*")
    @redis.cli("HSET", publisher, "number", "2")
    assert_equal "true", ask(a, "kept:x", "two")
    assert_match(/\A\d{16}\z/, ask(a, "kept:x", "three"))
  end

  # The master sends what it has, and then becomes another program. Who waits is in a worker that stays until then.
  def test_an_answer_that_comes_while_the_master_restarts_itself
    a = server
    refute_equal "false", ask(a, "kept:x", "before")
    @redis.freeze_process
    waiting, plain = %w[kept:x plain].map do |channel|
      before = unread_bytes
      asking = Thread.new { ask(a, channel, "meanwhile", "30") }
      eventually("#{channel} is sent to Redis") { unread_bytes > before }
      asking
    end
    from = a.log.bytesize
    a.signal("USR2")
    a.wait_for_log(/^- Restarting\.\.\./, from: from)
    @redis.thaw
    assert_match(/\A\d{16}\z/, waiting.value)
    assert_equal "true", plain.value
    assert_equal last_id("kept:x"), waiting.value
  end

  # The note that goes along is no part of the message.
  def test_the_largest_message
    write "rondo.rb", "max_publish_bytes 1000"
    a = server("-C", "rondo.rb")
    assert_match(/\A\d{16}\z/, ask(a, "kept:x", "x" * 1000))
    assert_match(/ArgumentError: /, ask(a, "kept:x", "x" * 1001))
  end

  # A program that is no server has the same rules, and publishes what Redis keeps.
  JOB = <<~RUBY
    require "rondo"
    Rondo::PubSub.history("kept:*", match: :redis, size: 2)
    Rondo::PubSub.history("kept:few", size: 1)
    Rondo::PubSub.default = Rondo::PubSub::RedisStreams.new(ENV.fetch("AT"))
    ARGV.each { |word| p Rondo.publish(*word.split("="), confirm: 60) }
  RUBY

  def test_a_job_publishes_what_is_kept
    a = server
    first = ask(a, "kept:x", "of the server".tr(" ", "-"))
    write "job.rb", JOB
    result = run_command(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "job.rb", "kept:x=one", "kept:x=two", "kept:few=a", "kept:few=b",
                         "plain=m", env: { "AT" => @redis.url })
    assert_equal [0, ""], [result.code, result.err]
    *ids, plain = result.out.split
    assert_equal [first.to_i, *ids.map(&:to_i)], [first.to_i, *ids.map(&:to_i)].sort.uniq
    assert_equal "true", plain
    assert_equal %w[2 1], %w[kept:x kept:few].map { |channel| length_of(channel).to_s }, "by the rules of who published last"
    assert_equal ids[1], last_id("kept:x")
  end

  private

  # What it acknowledged outlives its process.
  def redis_words
    ["--appendonly", "yes", "--appendfsync", "always"]
  end

  def store
    @redis
  end

  def begin_plain(workers)
    start("-w", workers, "-r", @redis.url)
  end

  # Bytes that Redis has not read, of all its connections.
  def unread_bytes
    File.readlines("/proc/net/tcp").drop(1).map(&:split).sum do |_, own, _, _, queues|
      own.split(":").last.hex == @redis.port ? queues.split(":").last.hex : 0
    end
  end

  def last_id(channel)
    @redis.cli("GET", "{rondo}:m:#{channel}").strip
  end
end
