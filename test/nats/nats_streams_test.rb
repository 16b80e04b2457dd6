# frozen_string_literal: true

# NATS with JetStream: a client goes on at another server where it was, without a gap and without a double.
# SPDX-License-Identifier: MIT

require_relative "../integration/nats/nats_case"
require "support/resuming"

class NatsStreamsTest < NatsCase
  include Resuming

  # A consumer begins, gives a page, and goes; then the state.
  READS_OF_A_COPY = 4

  def test_a_channel_without_a_rule_leaves_nothing_in_the_stream
    a = server
    b = server
    reader = reader(b, "plain")
    wait_for_subscribers("plain", 1)
    publish(a, "plain", "1")
    reader.read_until { reader.seen.size == 1 }
    assert_nil reader.last_id
    assert_equal 0, state["messages"]
  end

  def test_an_id_below_all_messages_is_a_reset
    server_with_reader("1")
    old = reader(server, "kept:x", after: "5")
    old.read_until { old.resets == 1 && old.seen == ["1"] }
  end

  # Somebody purged it.
  def test_what_a_stream_does_not_have_is_a_reset
    a, reader = server_with_reader("1")
    reader.close
    publish_in_turn(a, "kept:x", %w[2 3])
    request("$JS.API.STREAM.PURGE.rondo-rondo", keep: 1)
    reader.open(server, "kept:x")
    reader.read_until { reader.seen.size == 2 && reader.resets == 1 }
    assert_equal %w[1 3], reader.seen
  end

  # Nobody lost a connection, and the new one has as many messages soon.
  def test_a_stream_that_was_made_anew_at_once_is_a_reset
    a, reader = server_with_reader("1")
    old = reader.last_id
    config = JSON.generate(monitored("config"))
    request("$JS.API.STREAM.DELETE.rondo-rondo", {})
    talk("SUB back 1\r\nPUB $JS.API.STREAM.CREATE.rondo-rondo back #{config.bytesize}\r\n#{config}\r\n", /"created"/)
    publish_in_turn(server, "kept:x", %w[2 3])
    reader.read_until { reader.resets == 1 && reader.seen == %w[1 2 3] }
    again = reader(a, "kept:x", after: old)
    again.read_until { again.resets == 1 && again.seen == %w[2 3] }
  end

  def test_garbage_on_the_subjects_harms_nothing
    a, reader = server_with_reader("1")
    all = reader(a, "pattern:*")
    eventually("a pattern") { @nats.subscribers("rondo.p.>") == 1 }
    line = ["rondo.s.kept=3Ax.more", "rondo.s.", "rondo.s.=ZZ", "rondo.p.%", "rondo.s.#{"=41" * 1100}"]
    line.each { |subject| put(subject, "garbage") }
    put("rondo.s.kept=3Ax", "from elsewhere")
    put("rondo.s.kept=3Ax", "forged", "Rondo-Of: 99999999999999999999 t x 1")
    put("rondo.s.kept=3Ax", "\xff\xfe".b, "Rondo-Of: nonsense")
    reader.read_until { reader.seen.include?("forged") && reader.seen.include?("from elsewhere") }
    publish_in_turn(a, "kept:x", %w[2 3 4])
    [reader, all].each { |each| each.read_until { each.seen.last(3) == %w[2 3 4] } }
    refute_match(/is not available/, a.log)
  end

  private

  def lose_everything(*servers)
    @nats.kill
    FileUtils.rm_rf(File.join(@nats.folder, "store"))
    @nats.start
    servers.each { |each| each.wait_for_log(/is available again/) }
  end

  def reads
    @nats.monitor("jsz")["api"]["total"]
  end

  def monitored(part)
    @nats.monitor("jsz?streams=1&config=1")["account_details"].first["stream_detail"].first.fetch(part)
  end

  def put(subject, text, header = nil)
    head = "NATS/1.0\r\n#{"#{header}\r\n" if header}\r\n"
    talk("HPUB #{subject} #{head.bytesize} #{head.bytesize + text.bytesize}\r\n#{head}#{text.b}\r\n".b)
  end
end
