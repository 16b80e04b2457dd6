# frozen_string_literal: true

# NATS with JetStream, where rules keep little: what a limit has removed is told.
# SPDX-License-Identifier: MIT

require_relative "nats_case"
require "support/tcp_cutter"

class NatsLimitsTest < NatsCase
  APP = StreamsCase::APP.sub("size: 2000", "size: 3")

  def test_a_server_that_was_cut_off_tells_what_it_missed
    cutter = TcpCutter.new(@nats.port)
    a = server(verb: "nats 'nats://127.0.0.1:#{cutter.port}', jetstream: true")
    b = server
    few = reader(a, "kept:x")
    other = reader(a, "kept:y")
    %w[kept:x kept:y].each { |name| wait_for_subscribers(name, 1) }
    publish_in_turn(b, "kept:y", ["y"])
    publish_in_turn(b, "kept:x", ["0"])
    few.read_until { few.seen.size == 1 }
    cutter.cut
    a.wait_for_log(/is not available/)
    publish_in_turn(b, "kept:x", 1..9)
    publish_in_turn(b, "kept:y", ["z"])
    cutter.mend
    few.read_until { few.resets == 1 && few.seen.last == "9" }
    assert_equal %w[0 7 8 9], few.seen
    other.read_until { other.seen == %w[y z] }
    assert_equal 0, other.resets
  ensure
    cutter&.close
  end

  def test_an_id_before_what_is_kept_is_a_reset
    a, reader = server_with_reader("0")
    reader.close
    publish_in_turn(a, "kept:x", 1..5)
    reader.open(server, "kept:x")
    reader.read_until { reader.resets == 1 && reader.seen == %w[0 3 4 5] }
  end

  def test_rules_say_how_much_the_stream_keeps
    server
    eventually("three are kept") { config["max_msgs_per_subject"] == 3 }
    assert_equal 0, config["max_age"], "one rule keeps for ever"
  end

  private

  def config
    @nats.monitor("jsz?streams=1&config=1")["account_details"].first["stream_detail"].first["config"]
  end
end
