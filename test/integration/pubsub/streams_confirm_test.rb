# frozen_string_literal: true

# Who publishes learns whether the engine has the message: its id in a stream, and what is known while Redis is away.
# SPDX-License-Identifier: MIT

require_relative "streams_case"
require "support/confirming"

class StreamsConfirmTest < StreamsCase
  include Confirming

  APP = Confirming::APP

  def last_id(channel)
    @redis.cli("GET", "{rondo}:m:#{channel}").strip
  end

  # One application thread, which waits: the answer comes by another one.
  def test_the_answer_is_the_id_of_the_message
    a = server("-t", "1:1")
    reply = ask(a, "kept:x", "one")
    assert_match(/\A\d{16}\z/, reply)
    assert_equal last_id("kept:x"), reply
    reply = ask(a, "kept:y", "two", "block")
    assert_equal "true #{last_id("kept:y")}", reply
    assert_equal "true", ask(a, "plain", "three")
    assert_equal "true true", ask(a, "plain", "four", "block")
    assert_equal "false", ask(a, "kept:x", "five", "0")
    eventually("written anyway") { @redis.cli("XLEN", "{rondo}:s:kept:x").strip == "2" }
  end

  # It is not said to be there, and comes later.
  def test_while_redis_is_away_nobody_is_told_that_it_has_the_message
    a = server
    refute_equal "false", ask(a, "kept:x", "before")
    @redis.kill
    assert_equal "false", ask(a, "kept:x", "meanwhile", "0.2")
    waiting = Thread.new { ask(a, "kept:x", "until-it-is-back", "block") }
    a.wait_for_log(/is not available/)
    @redis.start
    assert_match(/\Atrue \d{16}\z/, waiting.value)
    texts = @redis.cli("XRANGE", "{rondo}:s:kept:x", "-", "+").split
    assert_equal %w[meanwhile until-it-is-back], texts & %w[meanwhile until-it-is-back]
  end

  def test_many_at_once_get_their_own_answers
    a = server("-t", "16:16")
    replies = Array.new(16) { |n| Thread.new { Array.new(20) { |i| [ask(a, "kept:#{n}", "m#{i}"), last_id("kept:#{n}")] } } }
    replies.flat_map(&:value).each { |reply, id| assert_equal id, reply }
  end

  def test_redis_without_streams_confirms_too
    ["2", "0"].each do |workers|
      a = start("-w", workers, "-r", @redis.url)
      a.wait_for_log(/Redis at|Listening/)
      assert_equal "true", ask(a, "kept:x", "one"), workers
      assert_equal "true true", ask(a, "kept:x", "one", "block")
      a.stop
    end
  end

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

  # The note that goes along is no part of the message.
  def test_the_largest_message
    write "rondo.rb", "max_publish_bytes 1000"
    a = server("-C", "rondo.rb")
    assert_match(/\A\d{16}\z/, ask(a, "kept:x", "x" * 1000))
    assert_match(/ArgumentError: /, ask(a, "kept:x", "x" * 1001))
  end

  def test_subscribers_get_the_message_without_a_note
    write "config.ru", StreamsCase::APP.sub("URI.decode_www_form_component(message))",
                                            "URI.decode_www_form_component(message), confirm: 60).positive?")
    a = server
    reader = reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    messages = ["text", "gr%C3%BC%C3%9F"]
    messages.each { |message| publish(a, "kept:x", message) }
    reader.read_until { reader.seen.size == 2 }
    assert_equal ["text", "grüß"], reader.seen.map { |text| text.dup.force_encoding("UTF-8") }
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
end
