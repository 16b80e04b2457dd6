# frozen_string_literal: true

# NATS with JetStream when NATS is away: killed, frozen, emptied, or cut off from one server.
# SPDX-License-Identifier: MIT

require_relative "../integration/nats/nats_case"
require "support/resuming"
require "support/tcp_cutter"

class NatsOutagesTest < NatsCase
  include Restarting

  def test_what_is_published_while_nats_is_away_is_written_once
    a = server
    b = server
    here = reader(a, "kept:x")
    there = reader(b, "kept:x")
    wait_for_subscribers("kept:x", 2)
    publish(a, "kept:x", "0")
    [here, there].each { |each| each.read_until { each.seen.size == 1 } }
    @nats.kill
    [a, b].each { |each| each.wait_for_log(/NATS at \S+ is not available/) }
    1.upto(20) { |number| publish(number.odd? ? a : b, "kept:x", number) }
    @nats.start
    [here, there].each { |each| each.read_until { each.seen.size == 21 } }
    assert_equal here.seen, there.seen, "in one order"
    assert_equal (0..20).map(&:to_s), here.seen.sort_by(&:to_i)
    assert_equal 0, here.resets + there.resets
    assert_equal 21, state["messages"]
    assert_equal here.last_id, there.last_id
    here.close
    publish(b, "kept:x", "last")
    here.open(b, "kept:x")
    here.read_until { here.seen.last == "last" }
    assert_equal 22, here.seen.size
  end

  def test_a_server_that_was_cut_off_catches_up_before_it_delivers
    cutter = TcpCutter.new(@nats.port)
    a = server(verb: "nats 'nats://127.0.0.1:#{cutter.port}', jetstream: true")
    b = server
    reader = reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    cutter.cut
    a.wait_for_log(/is not available/)
    publish_in_turn(b, "kept:x", 1..30)
    publish(a, "kept:x", "own")
    cutter.mend
    reader.read_until { reader.seen.size == 31 }
    assert_equal [*(1..30).map(&:to_s), "own"], reader.seen
    assert_equal 0, reader.resets
  ensure
    cutter&.close
  end

  # What had reached it before the connection was given up is not written again.
  def test_a_frozen_nats_writes_once
    a = server
    reader = reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    publish(a, "kept:x", "0")
    reader.read_until { reader.seen.size == 1 }
    @nats.freeze_process
    1.upto(10) { |number| publish(a, "kept:x", number) }
    a.wait_for_log(/is not available/)
    @nats.thaw
    reader.read_until { reader.seen.size == 11 }
    publish(a, "kept:x", "last")
    reader.read_until { reader.seen.last == "last" }
    assert_equal [*(0..10).map(&:to_s), "last"], reader.seen.sort_by { |text| [text[/\d+/] ? 0 : 1, text.to_i] }
    assert_equal 12, state["messages"]
  end

  # A machine that lost its power, or a backup. Another server has written as many messages before this one is back.
  def test_what_nats_had_acknowledged_and_has_lost_is_told
    cutter = TcpCutter.new(@nats.port)
    a = server(verb: "nats 'nats://127.0.0.1:#{cutter.port}', jetstream: true")
    reader = reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    publish(a, "kept:x", "1")
    reader.read_until { reader.seen.size == 1 }
    first = reader.last_id
    restart_nats { FileUtils.cp_r(store, "#{store}.old") }
    a.wait_for_log(/is available again/)
    publish_in_turn(a, "kept:x", %w[2 3])
    reader.read_until { reader.seen == %w[1 2 3] }
    cutter.cut
    restart_nats { FileUtils.rm_rf(store) and FileUtils.mv("#{store}.old", store) }
    publish_in_turn(server, "kept:x", %w[4 5 6])
    cutter.mend
    reader.read_until { reader.resets == 1 && reader.seen == %w[1 2 3 4 5 6] }
    again = reader(a, "kept:x", after: first)
    again.read_until { again.resets == 1 && again.seen.last(3) == %w[4 5 6] }
  ensure
    cutter&.close
  end

  def test_a_nats_that_comes_later
    @nats.kill
    write "later.rb", "#{nats_verb}\n"
    a = start("-w", "2", "-C", "later.rb")
    a.wait_for_log(/is not available/)
    reader = reader(a, "kept:x")
    publish(a, "kept:x", "early")
    @nats.start
    reader.read_until { reader.seen == ["early"] }
  end

  private

  def restart_nats
    @nats.kill
    yield
    @nats.start
  end

  def store
    File.join(@nats.folder, "store")
  end
end
