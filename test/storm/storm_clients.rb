# frozen_string_literal: true

# The clients of the storm. Each sends what one of its ways says, cut anywhere, and then does what clients
# do: reads a while, stops reading, goes on with the next request, shuts one half, leaves, or resets.
# Everything follows from one seed.
# SPDX-License-Identifier: MIT

require "socket"
require "support/websocket_frames"
require "zlib"

class StormClients
  CLIENTS = 10
  KEPT = 30 # connections of a client that just stay
  BODY = "b" * 100_000
  PATHS = %w[hello each?3 each?300 fails?2 large stream?3 stream?300 lost forgotten hijack hijack?1 partial?3
             partial?300 killed thrown exits timed slow?3 slow?30 file sendfile hints raises odd odd?200 odd?99
             static.txt nothing].freeze
  RARE = %w[forks slow?1500].freeze
  ORDERS = ["e", "r", "k", "h", "n", "c", "b", "t", "y", *%w[s S p u x].product(%w[all a b ab news]).map(&:join), "H1", "H", "Kx"].freeze

  def initialize(port, seed)
    @port = port
    @seed = seed
    @over = false
    @counts = Hash.new(0)
    @mutex = Mutex.new
  end

  # @return [Hash{Symbol => Integer}] how often each way was gone
  def run(seconds)
    threads = Array.new(CLIENTS) { |number| Thread.new { go_on(Random.new(@seed + number)) } }
    sleep seconds
    @over = true
    threads.each(&:join)
    @counts
  end

  private

  WAYS = { get: 6, pipelined: 2, upload: 2, chunked: 2, expect: 1, websocket: 5, events: 1, garbage: 1 }
         .flat_map { |way, weight| [way] * weight }.freeze

  def go_on(random)
    kept = []
    until @over
      way = WAYS.sample(random: random)
      @mutex.synchronize { @counts[way] += 1 }
      socket = one(way, random)
      kept << socket if socket
      kept.shift.close if kept.size > KEPT
    end
  ensure
    kept.each(&:close)
  end

  # The socket, if it is to stay.
  def one(way, random)
    socket = TCPSocket.new("127.0.0.1", @port)
    stays = nil
    begin
      2.times { send_cut(socket, send(way, random), random) }
      stays = leave(socket, random)
    rescue SystemCallError, IOError
      nil # the server has had enough, or so have we
    end
    stays ? socket : socket.close
  rescue SystemCallError
    nil # no connection: the server was busy
  end

  def send_cut(socket, bytes, random)
    bytes = bytes.byteslice(0, random.rand(bytes.bytesize + 1)) if random.rand(3).zero?
    cut = random.rand(bytes.bytesize + 1)
    [bytes.byteslice(0, cut), bytes.byteslice(cut..)].each do |piece|
      write_some(socket, piece)
      socket.read_nonblock(4096, exception: false) if random.rand(3).zero?
    end
  end

  # A server that does not read is left after a while.
  def write_some(socket, bytes)
    until bytes.empty?
      sent = socket.write_nonblock(bytes, exception: false)
      return unless sent != :wait_writable || socket.wait_writable(0.2)

      bytes = bytes.byteslice(sent..) unless sent == :wait_writable
    end
  end

  # Whether the connection stays open.
  def leave(socket, random)
    read_while(socket, random.rand(5))
    case random.rand(6)
    when 0 then reset(socket)
    when 1 then socket.shutdown(Socket::SHUT_WR) && read_while(socket, 3)
    when 2 then return true
    end
    false
  end

  def read_while(socket, times)
    times.times do
      break unless socket.wait_readable(0.02)
      break if socket.read_nonblock(65_536, exception: false).nil?
    end
  end

  def reset(socket)
    socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
  end

  # ---- the ways: what is sent ----

  def path(random)
    random.rand(300).zero? ? RARE.sample(random: random) : PATHS.sample(random: random)
  end

  def get(random)
    version = random.rand(8).zero? ? "1.0" : "1.1"
    "#{random.rand(8).zero? ? "HEAD" : "GET"} /#{path(random)} HTTP/#{version}\r\nHost: a\r\nX-Number: #{random.rand(99)}\r\n\r\n"
  end

  def pipelined(random)
    Array.new(1 + random.rand(12)) { get(random) }.join
  end

  def body(random)
    BODY.byteslice(0, random.rand(2).zero? ? random.rand(200) : random.rand(BODY.bytesize))
  end

  def target(random)
    %w[input some?10 hello lost large].sample(random: random)
  end

  def upload(random)
    bytes = body(random)
    "POST /#{target(random)} HTTP/1.1\r\nHost: a\r\nContent-Length: #{bytes.bytesize}\r\n\r\n#{bytes}"
  end

  def expect(random)
    bytes = body(random)
    "POST /#{target(random)} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: #{bytes.bytesize}\r\n\r\n" \
      "#{bytes if random.rand(2).zero?}"
  end

  def chunked(random)
    text = "POST /#{target(random)} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    random.rand(4).times { body(random).then { |bytes| text << "#{bytes.bytesize.to_s(16)}\r\n#{bytes}\r\n" unless bytes.empty? } }
    text << "0\r\n\r\n"
  end

  def events(random)
    last = "Last-Event-ID: #{random.rand(9)}\r\n" if random.rand(2).zero?
    "GET /events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n#{last}\r\n"
  end

  def websocket(random)
    deflate = "Sec-WebSocket-Extensions: permessage-deflate\r\n" if random.rand(2).zero?
    frames = Array.new(random.rand(8)) { message(random, deflate) }
    "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n#{deflate}\r\n#{frames.join}"
  end

  def message(random, deflate)
    text = ORDERS.sample(random: random)
    text += body(random) if text == "e"
    return frame(random.rand(16) | (random.rand(16) << 4), text.byteslice(0, 125)) if random.rand(20).zero?
    return frame(0x80 | (8 + random.rand(3)), "") if random.rand(10).zero?
    return frame(0x81, text) unless deflate

    frame(0xc1, Zlib::Deflate.new(9, -15).then { |zlib| zlib.deflate(text, Zlib::SYNC_FLUSH).delete_suffix("\0\0\xff\xff".b) })
  end

  def frame(first, bytes)
    length = bytes.bytesize
    size = if length < 126 then [0x80 | length].pack("C")
           elsif length < 65_536 then [0x80 | 126, length].pack("Cn")
           else [0x80 | 127, length].pack("CQ>")
           end
    [first].pack("C") + size + ("\0" * 4) + bytes
  end

  def garbage(random)
    random.bytes(1 + random.rand(300))
  end
end
