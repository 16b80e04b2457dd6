# frozen_string_literal: true

# Replies of Redis, with every cut of their bytes; limits; bytes that are not replies.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/redis/replies"

class RedisRepliesTest < Minitest::Test
  Replies = Rondo::PubSub::Redis::Replies

  STREAM = "+OK\r\n:42\r\n:-1\r\n$5\r\nhello\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n" \
           "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\na\r\n\r\n*2\r\n*2\r\n:1\r\n*1\r\n$-1\r\n+x\r\n".b
  VALUES = ["OK", 42, -1, "hello", "", nil, nil, [], ["message", "c", "a\r\n"], [[1, [nil]], "x"]].freeze

  def test_the_whole_stream_at_once
    assert_equal VALUES, read([STREAM])
  end

  def test_every_cut_in_two
    (1...STREAM.bytesize).each do |at|
      assert_equal VALUES, read([STREAM.byteslice(0, at), STREAM.byteslice(at..)]), "cut at #{at}"
    end
  end

  def test_single_bytes
    assert_equal VALUES, read(STREAM.each_char)
  end

  def test_an_error_is_an_answer_and_names_the_reason
    refusal, after = read(["-NOPERM not you\r\n+OK\r\n"])
    assert_instance_of Replies::Refusal, refusal
    assert_equal "NOPERM not you", refusal.message
    assert_equal ["ERR a  [31mb"], read(["-ERR a\n\e[31mb\r\n"]).map(&:message)
    assert_equal "OK", after
  end

  def test_text_is_utf8_where_it_can_be
    text, bytes = read(["$2\r\n\u00e4\r\n$2\r\n\xc3\x28\r\n".b])
    assert_equal [Encoding::UTF_8, "\u00e4"], [text.encoding, text]
    assert_equal [Encoding::BINARY, "\xc3\x28".b], [bytes.encoding, bytes]
  end

  def test_what_is_no_reply
    ["HTTP/1.1 400 Bad Request\r\n", "$x\r\n", ":1_000\r\n", ":\r\n", "$-2\r\n", "*-2\r\n", "$3\r\nabcd\r\n",
     "\r\n", ":12345678901234567890\r\n", "%1\r\n"].each do |bytes|
      assert_raises(Replies::Invalid, bytes.inspect) { read([bytes]) }
    end
  end

  def test_limits_come_before_the_bytes
    ["$1001\r\n", "*300\r\n", "*2\r\n$600\r\n#{"a" * 600}\r\n$600\r\n", "*1\r\n" * 9, "$999999999999999\r\n",
     "*9999999999999999\r\n"].each do |bytes|
      assert_raises(Replies::Invalid, bytes[0, 20]) { read([bytes], limit: 1000) }
    end
    assert_raises(Replies::Invalid) { read(["+#{"a" * 70_000}"], limit: 1 << 20) }
  end

  def test_the_limit_is_of_one_reply
    assert_equal ["a" * 900] * 5, read(["$900\r\n#{"a" * 900}\r\n" * 5], limit: 1000)
  end

  def test_broken_streams_end_in_values_or_invalid
    random = Random.new(7)
    2000.times do
      bytes = STREAM.dup
      random.rand(1..4).times { bytes.setbyte(random.rand(bytes.bytesize), "+-:$*0123456789\r\nx".bytes.sample(random: random)) }
      read([bytes], limit: 1000)
    rescue Replies::Invalid
      next
    end
  end

  private

  def read(parts, limit: 1 << 20)
    replies = Replies.new(limit)
    [].tap { |values| parts.each { |bytes| replies.feed(bytes) { |value| values << value } } }
  end
end
