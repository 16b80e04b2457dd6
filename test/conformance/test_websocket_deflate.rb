# frozen_string_literal: true

# RFC 7692 over real sockets: the rows of websocket_deflate_rules.rb.
# SPDX-License-Identifier: MIT

require "minitest/autorun"
require_relative "../support/raw_client"
require_relative "../support/server_process"
require_relative "websocket_deflate_rules"

class TestWebsocketDeflate < Minitest::Test
  APP = File.expand_path("websocket.ru", __dir__)
  HANDSHAKE = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
              "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
  Rules = WebsocketDeflateRules
  F = WebsocketFrames
  CHOPS = { "whole" => nil, "in pieces" => 997, "in odd pieces" => 7, "byte by byte" => 1 }.freeze
  THRESHOLD = 1024

  # Shared by all tests of a setting.
  def self.server(**settings)
    @servers ||= {}
    @servers[settings] ||= ServerProcess.new(APP, settings: { max_message_bytes: Rules::LIMIT,
                                                              max_pending_bytes: 67_108_864, **settings }).tap do |server|
      Minitest.after_run { server.stop }
    end
  end

  def teardown
    @client&.close
  end

  # @return [String] the extensions of the answer, nil without
  def open_websocket(offer, **settings)
    @client&.close
    @client = RawClient.new(self.class.server(**settings).url)
    @client.write("#{HANDSHAKE}#{"Sec-WebSocket-Extensions: #{offer}\r\n" if offer}\r\n")
    head = "".b
    head << (@client.read_some or flunk "closed after #{head.inspect}") until head.include?("\r\n\r\n")
    head, @rest = head.split("\r\n\r\n", 2)
    assert_match(%r{\AHTTP/1.1 101 }, head)
    head[/^sec-websocket-extensions: (.*?)\r?$/i, 1]
  end

  def send_in(size, bytes)
    return @client.write(bytes) unless size

    (0...bytes.bytesize).step(size) { |at| @client.write(bytes.byteslice(at, size)) }
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil # the server failed fast, and does not read the rest
  end

  # @return [Array<WebsocketFrames::Frame>] this many, or all until the server closes
  def read_frames(count = nil)
    frames = F.take(@rest)
    until frames.size == count
      more = @client.read_some or break
      @rest << more
      frames.concat(F.take(@rest))
    end
    frames
  rescue Errno::ECONNRESET
    frames
  end

  # @return [String] the payload of a whole message
  def payload_of(frame, window: 15)
    assert frame.fin
    assert_includes [0, 4], frame.rsv
    return frame.payload if frame.rsv.zero?

    assert_includes [F::TEXT, F::BINARY], frame.opcode
    text = Rules.inflate(frame.payload, window: window)
    assert_operator frame.payload.bytesize, :<, text.bytesize
    text
  end

  # ---- 12 and 13 ----

  def exchange(row, chop)
    assert open_websocket(row.offer), row.group
    sender = Thread.new { send_in(chop, row.bytes) }
    frames = read_frames(row.messages.size)
    sender.join
    frames.zip(row.messages) do |frame, message|
      where = "#{row.group}: #{message.bytesize} in #{row.fragment || "one"}"
      assert_equal row.opcode, frame.opcode, where
      assert payload_of(frame, window: row.window) == message, where
      packed = message.bytesize >= THRESHOLD && (row.window > 8 || message.bytesize <= 256)
      assert_equal packed, !frame.rsv.zero?, where unless row.group == "12.2"
    end
    @client.write(F.close)
    assert_equal [F::CLOSE], read_frames.map(&:opcode)
  end

  Rules::EXCHANGES.group_by(&:group).each do |group, rows|
    define_method("test_#{group}") do
      assert_equal 18, rows.size
      rows.each { |row| exchange(row, nil) }
    end

    define_method("test_#{group}_in_pieces") do
      rows.each { |row| exchange(row, 997) if row.messages.first.bytesize <= 16_384 }
    end
  end

  # ---- accepted offers ----

  def test_offers
    Rules::OFFERS.each do |offer, answer|
      answered = open_websocket(offer)
      assert answer == answered, "#{offer.to_s[0, 80]}: #{answered.inspect}"
    end
  end

  def test_offers_in_several_fields
    assert_equal Rules::AGREED, open_websocket("x; y=\"\r\nSec-WebSocket-Extensions: permessage-deflate")
  end

  def test_switched_off
    assert_nil open_websocket("permessage-deflate", deflate: false)
    @client.write(Rules.message(F::TEXT, "a"))
    assert_equal [F::CLOSE], read_frames.map(&:opcode)
  end

  def test_not_offered_is_not_used
    assert_nil open_websocket(nil)
    @client.write(F.frame(F::TEXT, Rules::LONG))
    assert_equal [0], read_frames(1).map(&:rsv)
  end

  def test_threshold_of_zero
    assert open_websocket("permessage-deflate", deflate_threshold_bytes: 0)
    @client.write(F.frame(F::TEXT, "a" * 50) + F.frame(F::TEXT, "b"))
    long, short = read_frames(2)
    assert_equal [4, 0], [long.rsv, short.rsv]
    assert_equal ["a" * 50, "b"], [payload_of(long), payload_of(short)]
  end

  def test_the_smallest_window
    assert open_websocket("permessage-deflate; server_max_window_bits=8", deflate_threshold_bytes: 0)
    fits, over = ["ab" * 128, "#{"ab" * 128}c"]
    @client.write(F.frame(F::TEXT, fits) + F.frame(F::TEXT, over))
    frames = read_frames(2)
    assert_equal [4, 0], frames.map(&:rsv)
    assert_equal [fits, over], frames.map { |frame| payload_of(frame, window: 8) }
  end

  # ---- the rules of messages ----

  def judge(row)
    *frames, last = read_frames
    answers = frames.map { |frame| [frame.opcode, payload_of(frame)] }
    assert row.answers == answers, "#{row.name}: #{answers.inspect[0, 200]}"
    assert_equal F::CLOSE, last&.opcode, row.name
    assert_equal row.code, last.payload.unpack1("n"), "#{row.name}: #{last.payload.inspect}"
  end

  CHOPS.each do |name, size|
    define_method("test_messages_#{name.tr(" ", "_")}") do
      Rules::ROWS.each do |row|
        next if size && row.bytes.bytesize / size > 2000

        open_websocket("permessage-deflate")
        send_in(size, row.bytes)
        @client.half_close unless row.code == 1000
        judge(row)
      end
    end
  end
end
