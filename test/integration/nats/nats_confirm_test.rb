# frozen_string_literal: true

# Who publishes learns whether NATS has the message: its id in the stream, and what is known while NATS is away or does
# not take it.
# SPDX-License-Identifier: MIT

require_relative "nats_case"
require "support/confirming"

class NatsConfirmTest < NatsCase
  include Confirming
  include Confirming::Tests

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

  private

  def store
    @nats
  end

  def begin_plain(workers)
    write "plain.rb", "nats #{@nats.url.inspect}\n"
    start("-w", workers, "-C", "plain.rb")
  end
end
