# frozen_string_literal: true

# The frames of relay.h in Ruby: bytes as the core writes them, every cut, every rule of its reader.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/pubsub/relay_frames"

class RelayFramesTest < Minitest::Test
  Frames = Rondo::PubSub::RelayFrames
  ROOT = File.expand_path("../../..", __dir__)

  # type, flags, channel, payload, id
  STREAM = [[1, 0, "news", ""], [1, 2, "a.*", ""], [3, 1, "news", "gr\u00fc\u00df"], [3, 0, "b", "\xff\0"], [3, 9, "c", ""], [2, 2, "a.*", ""]]
           .map { |type, flags, channel, payload| [type, flags, channel.bytesize, payload.bytesize, 7].pack("CCnNQ>") + channel.b + payload.b }.join
  FRAMES = [[:subscribe, "news", nil, false], [:subscribe, "a.*", nil, true], [:publish, "news", "gr\u00fc\u00df", nil],
            [:publish, "b", "\xff\0".b, nil], [:publish, "c", "", nil], [:unsubscribe, "a.*", nil, true]].freeze

  def test_every_cut
    (0..STREAM.bytesize).each do |at|
      assert_equal FRAMES, read(STREAM.byteslice(0, at), STREAM.byteslice(at..)), "cut at #{at}"
    end
    assert_equal FRAMES, read(*STREAM.each_char)
  end

  def test_what_it_writes_is_what_it_reads
    [["c", "text"], ["c" * 1024, ""], ["c", "\xff".b]].each do |channel, message|
      assert_equal [[:publish, channel, message, nil]], read(Frames.publish(channel, message))
    end
    assert_equal "\x03\x01\x00\x01\x00\x00\x00\x02#{"\0" * 8}cmm".b, Frames.publish("c", "mm")
    assert_equal 0, Frames.publish("c", "mm".b).getbyte(1)
    assert_equal 0, Frames.publish("c", "\xff").getbyte(1), "broken text is no text"
  end

  def test_who_waits_for_the_engine
    note = "0123456789abcdef"
    bytes = [3, 137, 1, 20, 0].pack("CCnNQ>") + "c" + note + "gr\u00fc".b
    got = nil
    Frames.new.feed(bytes) { |frame| got = [frame.note, frame.message, frame.message.encoding] }
    assert_equal [note, "gr\u00fc", Encoding::UTF_8], got
  end

  def test_what_is_above_the_limits_is_not_written
    assert_nil Frames.publish("", "x")
    assert_nil Frames.publish("c" * 1025, "x")
    assert_nil Frames.publish("c", "x" * (Frames::PAYLOAD_MAX + 1))
  end

  def test_heads_that_are_none_are_refused_before_what_follows
    { [0, 0, 1, 0] => /type 0/, [4, 0, 1, 0] => /type 4/, [255, 0, 1, 0] => /type 255/,
      [1, 1, 1, 0] => /flags 1/, [2, 4, 1, 0] => /flags 4/, [3, 2, 1, 0] => /flags 2/, [3, 16, 1, 0] => /flags 16/,
      [1, 0, 0, 0] => /channel of 0/, [3, 0, 1025, 0] => /channel of 1025/,
      [1, 0, 1, 1] => /payload of 1/, [3, 0, 1, (1 << 26) + 1] => /payload of 67108865/, [3, 136, 1, 15] => /payload of 15/ }.each do |head, reason|
      error = assert_raises(Frames::Invalid, head.inspect) { read([*head, 0].pack("CCnNQ>")) }
      assert_match reason, error.message
    end
  end

  def test_the_numbers_are_those_of_the_core
    header = File.read(File.join(ROOT, "ext/rondo/pubsub/relay.h"))
    assert_match(/RD_RELAY_SUBSCRIBE = 1,.*\n\s+RD_RELAY_UNSUBSCRIBE,.*\n\s+RD_RELAY_PUBLISH,/, header)
    assert_match(/RD_RELAY_TEXT = #{Frames::TEXT}, *\n?\s*RD_RELAY_PATTERN = #{Frames::PATTERN}/, header)
    assert_includes header, "RD_RELAY_HEAD_BYTES = #{Frames::HEAD_BYTES}"
    channel = File.read(File.join(ROOT, "ext/rondo/pubsub/channel.h"))
    assert_includes channel, "RD_CHANNEL_NAME_MAX #{Frames::CHANNEL_MAX}"
  end

  private

  def read(*parts)
    frames = Frames.new
    [].tap { |all| parts.each { |bytes| frames.feed(bytes) { |frame| all << [frame.type, frame.channel, frame.message, frame.pattern] } } }
  end
end
