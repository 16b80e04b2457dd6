# frozen_string_literal: true

# JetStream that takes no messages for now, because its disk is full: they wait, and nothing else does.
# SPDX-License-Identifier: MIT

require_relative "nats_case"
require "support/confirming"

class NatsStoreTest < NatsCase
  include Confirming

  def setup
    super
    @nats.restart("-c", conf(<<~CONF))
      jetstream { store_dir: "#{@nats.folder}/store", max_file_store: 300000 }
    CONF
    request("$JS.API.STREAM.CREATE.ballast", { name: "ballast", subjects: ["ballast"] }, /"created":/)
  end

  def test_messages_wait_at_their_place_and_hold_up_no_other_channel
    a = server("-w", "1")
    kept, plain = %w[kept:x plain].map { |name| reader(a, name).tap { wait_for_subscribers(name, 1) } }
    publish(a, "kept:x", "0")
    kept.read_until { kept.seen == ["0"] }
    fill
    1.upto(40) { |number| %w[kept:x plain].each { |channel| publish(a, channel, number) } }
    plain.read_until { plain.seen.size == 40 }
    assert_equal (1..40).map(&:to_s), plain.seen
    a.wait_for_log(/! NATS at \S+: JetStream: insufficient resources; messages of channels with a rule wait/)
    assert_equal 1, state["messages"]
    empty
    kept.read_until { kept.seen.size == 41 }
    assert_equal (0..40).map(&:to_s), kept.seen
    a.wait_for_log(/\* NATS at \S+ takes messages of channels with a rule again after \d+\.\d s/)
    publish(a, "kept:x", "last")
    kept.read_until { kept.seen.last == "last" }
    assert_equal 42, state["messages"]
    assert_equal 0, kept.resets
    assert_equal [1, 1], ["insufficient resources", "a rule again"].map { |words| a.log.scan(words).size }
    refute_match(/is not available/, a.log)
  end

  def test_who_waits_gets_the_id_when_the_stream_has_the_message
    a = server
    fill
    told = Thread.new { ask(a, "kept:x", "one", "60") }
    a.wait_for_log(/insufficient resources/)
    assert_equal "true", ask(a, "plain", "x")
    assert_predicate told, :alive?
    empty
    assert_match(/\A\d{16}\z/, told.value)
  end

  def test_what_waits_is_lost_at_the_end_and_the_log_says_so
    a = server
    fill
    3.times { |number| publish(a, "kept:x", number) }
    a.wait_for_log(/insufficient resources/)
    a.stop
    assert_match(/! NATS at \S+: 3 messages were not sent/, a.log)
  end

  def test_what_waits_is_written_once_after_a_restart
    a = server("-w", "1")
    reader = reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    publish(a, "kept:x", "0")
    reader.read_until { reader.seen == ["0"] }
    fill
    1.upto(30) { |number| publish(a, "kept:x", number) }
    a.wait_for_log(/insufficient resources/)
    from = a.log.bytesize
    a.signal("USR2")
    [/Worker 0 .* phase: 1/, /^Rondo starting in cluster mode.*insufficient resources/m].each { |line| a.wait_for_log(line, from: from) }
    empty
    reader.stay(a, "kept:x") { reader.seen.size == 31 }
    assert_equal [(0..30).map(&:to_s), 0], [reader.seen, reader.resets]
    assert_equal 31, state["messages"]
    refute_match(/were not sent/, a.log)
  end

  private

  # Nobody waits for an answer.
  def publish(server, channel, message)
    ask(server, channel, message.to_s, "0")
  end

  # Another stream takes all of the disk.
  def fill
    talk("PUB ballast 10000\r\n#{"x" * 10_000}\r\n" * 40)
    request("ballast", "", /insufficient resources/)
  end

  def empty
    request("$JS.API.STREAM.DELETE.ballast", {})
  end
end
