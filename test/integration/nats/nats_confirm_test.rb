# frozen_string_literal: true

# Who publishes learns whether NATS has the message: its id in the stream, and what is known while NATS is away or does
# not take it.
# SPDX-License-Identifier: MIT

require_relative "nats_case"
require "support/confirming"

class NatsConfirmTest < NatsCase
  include Confirming

  APP = Confirming::APP

  # One application thread, which waits: the answer comes by another one.
  def test_the_answer_is_the_id_of_the_message
    a = server("-t", "1:1")
    reader = reader(server, "kept:x")
    wait_for_subscribers("kept:x", 1)
    reply = ask(a, "kept:x", "one")
    assert_match(/\A\d{16}\z/, reply)
    reader.read_until { reader.seen == ["one"] }
    assert_equal reader.last_id, reply
    reply = ask(a, "kept:x", "two", "block")
    reader.read_until { reader.seen.last == "two" }
    assert_equal "true #{reader.last_id}", reply
    assert_equal "true", ask(a, "plain", "three")
    assert_equal "true true", ask(a, "plain", "four", "block")
    assert_equal "false", ask(a, "kept:x", "five", "0")
    reader.read_until { reader.seen.last == "five" }
  end

  # It is not said to be there, and comes later.
  def test_while_nats_is_away_nobody_is_told_that_it_has_the_message
    a = server
    refute_equal "false", ask(a, "kept:x", "before")
    @nats.kill
    assert_equal "false", ask(a, "kept:x", "meanwhile", "0.2")
    waiting = Thread.new { ask(a, "kept:x", "until-it-is-back", "block") }
    plain = Thread.new { ask(a, "plain", "until-it-is-back", "block") }
    a.wait_for_log(/is not available/)
    @nats.start
    assert_match(/\Atrue \d{16}\z/, waiting.value)
    assert_equal "true true", plain.value
    reader = reader(a, "kept:x", after: "1")
    reader.read_until { reader.seen.size == 3 }
    assert_equal %w[before meanwhile until-it-is-back], reader.seen
  end

  def test_many_at_once_get_their_own_answers
    a = server("-t", "16:16")
    replies = Array.new(16) { |n| Thread.new { Array.new(20) { |i| ["#{n}-#{i}", ask(a, "kept:#{n}", "#{n}-#{i}")] } } }
    replies = replies.flat_map(&:value).to_h
    assert_empty replies.reject { |_, reply| reply.match?(/\A\d{16}\z/) }, a.log
    16.times do |n|
      reader = reader(a, "kept:#{n}", after: replies["#{n}-0"])
      reader.read_until { reader.seen.size == 19 }
      assert_equal replies["#{n}-19"], reader.last_id
    end
    assert_equal 320, replies.values.uniq.size
  end

  def test_without_jetstream
    %w[2 0].each do |workers|
      write "plain.rb", "nats #{@nats.url.inspect}\n"
      a = start("-w", workers, "-C", "plain.rb")
      a.wait_for_log(/NATS at|Listening/)
      assert_equal "true", ask(a, "kept:x", "one"), workers
      assert_equal "true true", ask(a, "kept:x", "one", "block")
      a.stop
    end
  end

  def test_the_first_process_is_told_too
    write "first.rb", <<~RUBY
      #{nats_verb}
      after_worker_exit do
        Thread.new { warn "told: \#{%w[kept:x plain].map { |name| Rondo.publish(name, "x", confirm: 60) }.inspect}" }
      end
    RUBY
    a = start("-w", "2", "-C", "first.rb")
    assert_match(/\A\d{16}\z/, ask(a, "kept:x", "the-rule-is-known"))
    Process.kill("KILL", a.log[/Worker 0 \(PID: (\d+)/, 1].to_i)
    a.wait_for_log(/told: \[\d{16}, true\]$/)
  end

  def test_what_is_not_allowed_is_refused
    @nats.restart(*STORE, "-c", conf(<<~CONF))
      authorization { users = [ { user: me, password: secret, permissions: { publish: { deny: [ "rondo.p.mine", "rondo.s.kept=3Amine" ] } } } ] }
    CONF
    a = server(verb: "nats 'nats://me:secret@127.0.0.1:#{@nats.port}', jetstream: true")
    %w[mine kept:mine].each { |channel| assert_equal "true false", ask(a, channel, "x", "block"), channel }
    a.wait_for_log(/Permissions Violation for Publish to "rondo.s.kept=3Amine"/)
    assert_equal "true", ask(a, "other", "x")
    assert_match(/\A\d{16}\z/, ask(a, "kept:x", "x"))
    refute_match(/is not available/, a.log)
  end

  def test_what_the_server_does_not_take
    @nats.restart(*STORE, "-c", conf("max_payload: 6000\n"))
    a = server
    assert_equal %w[false false], ["kept:x", "plain"].map { |channel| ask(a, channel, "x" * 2500) }
    a.wait_for_log(/a message is longer than max_payload of NATS/)
    assert_match(/\A\d{16}\z/, ask(a, "kept:x", "x" * 1500))
  end

  # Somebody made it who wants that it refuses messages.
  def test_a_stream_that_is_full
    words = { name: "rondo-rondo", subjects: ["rondo.s.>"], discard: "new", max_msgs: 1, storage: "file", num_replicas: 1 }
    request("$JS.API.STREAM.CREATE.rondo-rondo", words, /"created":/)
    a = server
    assert_match(/\A\d{16}\z/, ask(a, "kept:x", "one"))
    assert_equal "true false", ask(a, "kept:x", "two", "block")
    a.wait_for_log(/JetStream: maximum messages exceeded/)
    assert_equal "true", ask(a, "plain", "three")
    refute_match(/is not available/, a.log)
  end

  def test_subscribers_get_the_message_without_a_note
    a = server
    reader = reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    ["text", "gr%C3%BC%C3%9F"].each { |message| ask(a, "kept:x", message) }
    reader.read_until { reader.seen.size == 2 }
    assert_equal ["text", "grüß"], reader.seen.map { |text| text.dup.force_encoding("UTF-8") }
  end
end
