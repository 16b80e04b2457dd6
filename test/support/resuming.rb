# frozen_string_literal: true

# What holds for every engine that keeps messages: tests for cases of streams_case.rb, which say how servers start and
# what their store is.
# SPDX-License-Identifier: MIT

# A client goes on at another server where it was, without a gap and without a double. Who includes it has
# `lose_everything`, with the servers, and `reads`, how often the store was asked; READS_OF_A_COPY are one copy's.
module Resuming
  def test_a_client_of_one_server_resumes_at_another
    a = server
    b = server
    reader = reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    10.times do |number|
      publish(number.odd? ? a : b, "kept:x", number)
      reader.read_until { reader.seen.size > number }
    end
    reader.close
    publish_in_turn(a, "kept:x", 10..19)
    reader.open(b, "kept:x")
    reader.read_until { reader.seen.size == 20 }
    wait_for_subscribers("kept:x", 1)
    publish_in_turn(a, "kept:x", 20..29)
    reader.read_until { reader.seen.size == 30 }
    assert_equal (0..29).map(&:to_s), reader.seen
    assert_equal 0, reader.resets
  end

  # Its only id is that of the last event, whichever channel that was of.
  def test_a_client_of_several_channels_resumes_all_of_them
    a = server
    b = server
    other = reader(b, "kept:y")
    reader = reader(a, "kept:x", "kept:y")
    %w[kept:x kept:y].zip([1, 2]) { |name, count| wait_for_subscribers(name, count) }
    publish(a, "kept:y", "y1")
    reader.read_until { reader.seen.size == 1 }
    publish(a, "kept:x", "x1")
    reader.read_until { reader.seen.size == 2 }
    reader.close
    publish(a, "kept:x", "x2")
    publish(a, "kept:y", "y2")
    reader.open(b, "kept:y", "kept:x")
    reader.read_until { reader.seen.size == 4 }
    other.read_until { other.seen.size == 2 }
    assert_equal %w[x1 x2 y1 y2], reader.seen.sort
    assert_equal %w[y1 y2], other.seen
    assert_equal 0, reader.resets
  end

  def test_many_clients_that_come_back_cost_few_reads
    a, reader = server_with_reader("0")
    publish_in_turn(a, "kept:x", 1..60)
    b = server
    before = reads
    crowd = Array.new(50) { reader(b, "kept:x", after: reader.last_id) }
    crowd.each { |each| each.read_until { each.seen.size == 60 } }
    assert_equal [(1..60).map(&:to_s)], crowd.map(&:seen).uniq
    assert_includes 1..self.class::READS_OF_A_COPY, reads - before
  end

  # It is of another installation, or of another program.
  def test_an_id_of_no_message_is_a_reset
    a, = server_with_reader("1")
    %w[8999999999999999 99999999999999999999 1700000000000-0 x].each do |id|
      stranger = reader(a, "kept:x", after: id)
      stranger.read_until { stranger.resets == 1 }
    end
    a.wait_for_log(/Subscribed 127\.0\.0\.1 without the messages that it missed: the last id that it names is of no message/)
    new = reader(a, "kept:x", after: "")
    wait_for_subscribers("kept:x", 1)
    publish(a, "kept:x", "2")
    new.read_until { new.seen == ["2"] }
    assert_equal 0, new.resets
  end

  def test_a_store_that_lost_everything_is_a_reset_for_who_is_here_and_who_comes_back
    a = server
    b = server
    here = reader(a, "kept:x")
    away = reader(b, "kept:x")
    wait_for_subscribers("kept:x", 2)
    publish(a, "kept:x", "1")
    [here, away].each { |each| each.read_until { each.seen.size == 1 } }
    first = here.last_id
    away.close
    lose_everything(a, b)
    publish(b, "kept:x", "2")
    here.read_until { here.seen.size == 2 }
    assert_equal [1, first], [here.resets, here.last_id_at_reset]
    away.open(b, "kept:x")
    away.read_until { away.resets == 1 && away.seen.size == 2 }
    assert_equal first, away.last_id_at_reset
    [a, b].each { |each| each.wait_for_log(/gap of kept:x told/) }
  end
end

# A restart by exec.
module Restarting
  # Clients of the server stay connected, and miss nothing that others publish meanwhile.
  def test_a_whole_restart_loses_nothing
    a = server
    b = server
    reader = reader(b, "kept:x")
    wait_for_subscribers("kept:x", 1)
    publisher = Thread.new do
      count = 0
      until @over
        publish(a, "kept:x", count)
        count += 1
      end
      count
    end
    from = b.log.bytesize
    b.signal("USR2")
    b.wait_for_log(/^- Worker 1 \(PID: \d+\) booted/, from: from)
    @over = true
    sent = publisher.value
    reader.read_until { reader.seen.size >= sent || reader.ended? }
    reader.open(b, "kept:x") if reader.ended?
    reader.read_until { reader.seen.size >= sent }
    assert_equal (0...sent).map(&:to_s), reader.seen.sort_by(&:to_i)
    assert_equal 0, reader.resets
  end
end
