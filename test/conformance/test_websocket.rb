# frozen_string_literal: true

# RFC 6455 over real sockets: the rows of websocket_rules.rb, each whole, frame by frame, in odd pieces
# and byte by byte, and those of websocket_large_rules.rb; then the handshake.
# SPDX-License-Identifier: MIT

require "minitest/autorun"
require_relative "../support/raw_client"
require_relative "../support/server_process"
require_relative "websocket_large_rules"

class TestWebsocket < Minitest::Test
  APP = File.expand_path("websocket.ru", __dir__)
  KEY = "dGhlIHNhbXBsZSBub25jZQ=="
  HANDSHAKE = { "Host" => "a", "Connection" => "Upgrade", "Upgrade" => "websocket", "Sec-WebSocket-Version" => "13",
                "Sec-WebSocket-Key" => KEY }.freeze
  F = WebsocketFrames
  LARGE = { max_message_bytes: WebsocketLargeRules::MESSAGE_MAX }.freeze

  # One server for each combination of settings.
  def self.server(settings = { max_message_bytes: 262_144 })
    @servers ||= {}
    @servers[settings] ||= ServerProcess.new(APP, settings: settings).tap do |server|
      Minitest.after_run { server.stop }
    end
  end

  def dial(fields = HANDSHAKE, line: "GET /chat HTTP/1.1", server: self.class.server)
    @client&.close
    @client = RawClient.new(server.url)
    @client.write("#{line}\r\n#{fields.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n")
  end

  def teardown
    @client&.close
  end

  # @return [RawClient] a WebSocket
  def open_websocket(server: self.class.server)
    dial(server: server)
    head = read_head
    assert_match(%r{\AHTTP/1.1 101 }, head)
    @client
  end

  def read_head
    text = String.new(encoding: Encoding::BINARY)
    text << (@client.read_some or flunk "closed after #{text.inspect}") until text.include?("\r\n\r\n")
    head, @rest = text.split("\r\n\r\n", 2)
    head
  end

  def send_in(chop, frames)
    return frames.each { |frame| @client.write(frame) } if chop == :frames

    bytes = frames.join
    (0...bytes.bytesize).step(chop || bytes.bytesize) { |at| @client.write(bytes.byteslice(at, chop || bytes.bytesize)) }
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil # the server failed fast, and does not read the rest
  end

  # @return [Array<WebsocketFrames::Frame>] all frames until the server closes
  def frames_until_end
    buffer = @rest.b
    while (more = @client.read_some)
      buffer << more
    end
    frames = F.take(buffer)
    assert_empty buffer, "half a frame"
    frames
  rescue Errno::ECONNRESET
    F.take(buffer)
  end

  def judge(row)
    frames = frames_until_end
    last = frames.pop
    assert_equal row.answers, frames.map { |frame| [frame.opcode, frame.payload] }, row.name
    assert(frames.all? { |frame| frame.fin && frame.rsv.zero? })
    assert_equal F::CLOSE, last&.opcode, row.name
    return assert_equal("", last.payload, row.name) unless row.code

    assert_equal row.code, last.payload.unpack1("n"), "#{row.name}: #{last.payload.inspect}"
  end

  WebsocketRules::ROWS.group_by(&:group).each do |group, rows|
    WebsocketRules::CHOPS.each do |name, chop|
      define_method("test_#{group}_#{name}".tr(" ", "_")) do
        rows.select { |row| row.sent?(chop) }.each do |row|
          open_websocket
          send_in(chop, row.frames)
          @client.half_close unless row.code == 1000
          judge(row)
        end
      end
    end
  end

  WebsocketLargeRules::ROWS.group_by(&:group).each do |group, rows|
    define_method("test_#{group}") do
      rows.each do |row|
        open_websocket(server: self.class.server(LARGE))
        bytes = row.bytes
        row.rounds.times do
          send_in(row.writes, [bytes])
          message = next_message
          assert message == [row.opcode, row.payload], "#{row.number}: #{row.name}" # a difference would be too long to read of megabytes
        end
        @client.write(F.close)
        assert_equal [[F::CLOSE, F.close_payload(1000)]], frames_until_end.map { |frame| [frame.opcode, frame.payload] }
      end
    end
  end

  # @return [Array(Integer, String)]
  def next_message
    until (frame = F.take_one(@rest))
      @rest << @client.read_some
    end
    [frame.opcode, frame.payload]
  end

  def test_every_row_of_the_table_is_there
    numbers = WebsocketRules::ROWS.flat_map(&:numbers) + WebsocketLargeRules::ROWS.map(&:number)
    wanted = WebsocketRules::TABLE.flat_map { |group, count| (1..count).map { |number| "#{group}.#{number}" } }
    assert_equal 303, wanted.size
    assert_empty wanted - numbers
    assert_equal wanted.size, numbers.size, "one row for each"
  end

  # ---- the handshake ----

  def test_the_answer_to_the_key_of_the_rfc
    dial
    head = read_head.downcase
    assert_includes head, "\r\nsec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="
    assert_includes head, "\r\nupgrade: websocket"
    assert_includes head, "\r\nconnection: upgrade"
    refute_includes head, "content-length"
    refute_includes head, "sec-websocket-extensions"
  end

  def test_what_is_no_handshake_is_a_request
    without = ->(name) { HANDSHAKE.except(name) }
    with = ->(fields) { HANDSHAKE.merge(fields) }
    [without["Connection"], without["Upgrade"], without["Sec-WebSocket-Key"], without["Sec-WebSocket-Version"],
     with["Sec-WebSocket-Key" => "short"], with["Sec-WebSocket-Version" => "8"], with["Connection" => "close"],
     with["Upgrade" => "h2c"], with["Sec-WebSocket-Key" => "#{"A" * 23}="]].each do |fields|
      dial(fields)
      assert_equal 200, @client.response.status, fields.inspect
    end
    dial(HANDSHAKE, line: "POST /chat HTTP/1.1")
    assert_equal 200, @client.response.status
  end

  def test_lists_and_case
    dial(HANDSHAKE.merge("Connection" => "keep-alive, UPGRADE", "Upgrade" => "foo, WebSocket"))
    assert_match(%r{\AHTTP/1.1 101 }, read_head)
  end

  def test_frames_right_behind_the_handshake
    @client = RawClient.new(self.class.server.url)
    fields = HANDSHAKE.map { |name, value| "#{name}: #{value}\r\n" }.join
    @client.write("GET / HTTP/1.1\r\n#{fields}\r\n#{F.frame(F::TEXT, "early")}#{F.close}")
    read_head
    assert_equal [[F::TEXT, "early"], [F::CLOSE, "\x03\xe8".b]], frames_until_end.map { |f| [f.opcode, f.payload] }
  end
end
