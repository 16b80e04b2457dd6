# frozen_string_literal: true

# permessage-deflate as data: what a client offers and what the server answers, messages of many sizes and kinds with
# every offer that makes a difference, and compressed messages that break a rule. Run by test_websocket_deflate.rb. The
# client is Ruby's Zlib.
#
# The well-known suite (groups 12.1 to 12.5 and 13.1 to 13.7, 18 cases each) sends a thousand messages in each case.
# Here a case has as many as BYTES_PER_ROW allows, 2 to 20, so that all of them take only seconds.
# SPDX-License-Identifier: MIT

require "zlib"
require_relative "../support/websocket_frames"

module WebsocketDeflateRules
  F = WebsocketFrames
  TAIL = "\x00\x00\xff\xff".b
  AGREED = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

  # @!attribute offer [String] of the client
  # @!attribute window [Integer] bits the client inflates with: no server may need more
  # @!attribute opcode [Integer]
  # @!attribute messages [Array<String>] as they are before they are compressed
  # @!attribute fragment [Integer, nil] compressed bytes of a frame
  Exchange = Struct.new(:group, :offer, :window, :opcode, :messages, :fragment, keyword_init: true) do
    def bytes
      messages.map { |message| WebsocketDeflateRules.message(opcode, message, fragment: fragment) }.join
    end
  end

  # @!attribute bytes [String] of a client that has the extension
  # @!attribute answers [Array<Array(Integer, String)>] opcode and inflated payload of each frame but the last Close
  # @!attribute code [Integer] of the Close
  Row = Struct.new(:name, :bytes, :answers, :code, keyword_init: true)

  module_function

  # @return [String] the payload of a compressed message
  def deflate(text, level: 6, window: 15, flush: Zlib::SYNC_FLUSH, strategy: Zlib::DEFAULT_STRATEGY)
    packer = Zlib::Deflate.new(level, -window, 8, strategy)
    bytes = packer.deflate(text.b, flush)
    packer.close
    flush == Zlib::SYNC_FLUSH ? bytes.delete_suffix(TAIL) : bytes
  end

  def inflate(bytes, window: 15)
    unpacker = Zlib::Inflate.new(-window)
    unpacker.inflate(bytes + TAIL)
  ensure
    unpacker.close
  end

  # A message whose frames hold these bytes.
  def frames(opcode, payload, fragment: nil, rsv: 4)
    size = fragment || [payload.bytesize, 1].max
    pieces = (0...[payload.bytesize, 1].max).step(size).map { |at| payload.byteslice(at, size) }
    pieces.each_with_index.map do |piece, index|
      first = index.zero?
      F.frame(first ? opcode : F::CONTINUATION, piece, fin: index == pieces.size - 1, rsv: first ? rsv : 0)
    end.join
  end

  def message(opcode, text, fragment: nil, **options)
    frames(opcode, deflate(text, **options), fragment: fragment)
  end

  # ---- 12: payloads, sizes, fragments; 13: offers ----

  RANDOM = Random.new(12)
  WORDS = Array.new(500) { Array.new(RANDOM.rand(2..9)) { RANDOM.rand(97..122).chr }.join }.freeze
  LARGEST = 131_072
  MAKERS = {
    "12.1" => -> { %({"id":#{RANDOM.rand(1_000_000)},"name":"#{WORDS.sample(random: RANDOM)}","tags":["#{WORDS.sample(random: RANDOM)}"]},) },
    "12.2" => -> { RANDOM.bytes(64) },
    "12.3" => -> { "#{WORDS.sample(random: RANDOM)} " },
    "12.4" => -> { %(<li class="entry"><a href="/#{WORDS.sample(random: RANDOM)}">#{WORDS.sample(random: RANDOM)}</a></li>\n) },
    "12.5" => -> { "\u00fc\u20ac#{[RANDOM.rand(0x4e00..0x9fff)].pack("U")}\u{1f600}".b }
  }.freeze
  PAYLOADS = MAKERS.transform_values do |maker|
    text = "".b
    text << maker.call while text.bytesize < LARGEST + 100
    text.freeze
  end.freeze
  BYTES_PER_ROW = 50_000
  SHAPES = [16, 64, 256, 1024, 4096, 8192, 16_384, 32_768, 65_536, 131_072].map { |size| [size, nil] } +
           [[8192, 256], [16_384, 256], [32_768, 256], [65_536, 1024], [131_072, 1024], [131_072, 4096],
            [131_072, 8192], [131_072, 32_768]]
  WINDOWS = { "13.1" => ["permessage-deflate; client_no_context_takeover; client_max_window_bits", 15],
              "13.2" => ["permessage-deflate; server_no_context_takeover; client_max_window_bits", 15],
              "13.3" => ["permessage-deflate; server_max_window_bits=9; client_max_window_bits=9", 9],
              "13.4" => ["permessage-deflate; server_max_window_bits=15", 15],
              "13.5" => ["permessage-deflate; server_no_context_takeover; server_max_window_bits=9", 9],
              "13.6" => ["permessage-deflate; server_no_context_takeover; server_max_window_bits=15", 15],
              "13.7" => ["permessage-deflate; server_no_context_takeover; server_max_window_bits=8, " \
                         "permessage-deflate; server_no_context_takeover; server_max_window_bits=0, " \
                         "permessage-deflate; server_no_context_takeover", 8] }.freeze

  # This many bytes of the text, in whole characters, from another position for each message.
  def piece(text, at, size)
    return text.byteslice(at, size) unless text.equal?(PAYLOADS["12.5"])

    piece = text.byteslice(at / 12 * 12, size).force_encoding(Encoding::UTF_8)
    piece = piece.byteslice(0, piece.bytesize - 1) until piece.valid_encoding?
    piece.b
  end

  def exchange(group, payload, offer, window, size, fragment)
    text = PAYLOADS[payload]
    count = (BYTES_PER_ROW / size).clamp(2, 20)
    Exchange.new(group: group, offer: offer, window: window, fragment: fragment,
                 opcode: payload == "12.2" ? F::BINARY : F::TEXT,
                 messages: Array.new(count) { |i| piece(text, i * 7 % 90, size) })
  end

  ANY = ["permessage-deflate; client_max_window_bits", 15].freeze
  EXCHANGES = (MAKERS.keys.map { |group| [group, group, *ANY] } + WINDOWS.map { |group, offer| [group, "12.1", *offer] })
              .flat_map { |row| SHAPES.map { |size, fragment| exchange(*row, size, fragment) } }

  # ---- offers and answers; nil: no extension ----

  PD = "permessage-deflate"
  OFFERS = {
    nil => nil,
    PD => AGREED,
    "#{PD}; client_max_window_bits" => AGREED,
    "#{PD};client_max_window_bits=8" => AGREED,
    "#{PD} ; client_max_window_bits = \"10\"" => AGREED,
    "#{PD}; server_no_context_takeover; client_no_context_takeover" => AGREED,
    "#{PD}; server_max_window_bits=9" => "#{AGREED}; server_max_window_bits=9",
    "#{PD}; server_max_window_bits=\"15\"" => "#{AGREED}; server_max_window_bits=15",
    "#{PD}; server_max_window_bits=12; client_max_window_bits=12" => "#{AGREED}; server_max_window_bits=12",
    "#{PD}; server_max_window_bits=8" => "#{AGREED}; server_max_window_bits=8",
    "#{PD}; server_max_window_bits=7, #{PD}" => AGREED,
    "#{PD}; server_max_window_bits=10, #{PD}; client_max_window_bits" => "#{AGREED}; server_max_window_bits=10",
    "x-webkit-deflate-frame, #{PD}; client_max_window_bits" => AGREED,
    "permessage-bzip2; method=\"a, b\", #{PD}" => AGREED,
    ", , #{PD}," => AGREED,
    "x-webkit-deflate-frame" => nil,
    "permessage-deflat" => nil,
    "#{PD}; server_max_window_bits" => nil,
    "#{PD}; server_max_window_bits=" => nil,
    "#{PD}; server_max_window_bits=0" => nil,
    "#{PD}; server_max_window_bits=07" => nil,
    "#{PD}; server_max_window_bits=16" => nil,
    "#{PD}; server_max_window_bits=4294967305" => nil,
    "#{PD}; server_max_window_bits=nine" => nil,
    "#{PD}; client_max_window_bits=7" => nil,
    "#{PD}; client_max_window_bits=\"\"" => nil,
    "#{PD}; server_no_context_takeover=1" => nil,
    "#{PD}; client_no_context_takeover=\"true\"" => nil,
    "#{PD}; server_no_context_takeover; server_no_context_takeover" => nil,
    "#{PD}; client_max_window_bits; client_max_window_bits" => nil,
    "#{PD}; mystery" => nil,
    "#{PD}; mystery, #{PD}" => AGREED,
    "#{PD};" => nil,
    "#{PD};; client_max_window_bits" => nil,
    "#{PD} client_max_window_bits" => nil,
    "#{PD}; client_max_window_bits=\"8" => nil,
    "; #{PD}" => nil,
    "\"#{PD}\"" => nil,
    "#{"x;\"," * 10_000}#{PD}" => AGREED, # every second comma is quoted
    "#{"x;\"," * 10_001}#{PD}" => nil,
    "#{"x=\"" * 15_000}, #{PD}" => AGREED,
    "#{";" * 50_000}, #{PD}" => AGREED
  }.freeze

  # ---- compressed messages ----

  ROWS = []

  def good(name, bytes, *answers)
    ROWS << Row.new(name: name, bytes: bytes + F.close, answers: answers, code: 1000)
  end

  def bad(name, code, bytes, *answers)
    ROWS << Row.new(name: name, bytes: bytes, answers: answers, code: code)
  end

  def echo(text, opcode = F::TEXT)
    [opcode, text.b]
  end

  HELLO = [F::TEXT, "Hello"].freeze
  LONG = "a longer text that pays to be packed, " * 100
  LIMIT = 262_144

  good "as in the RFC", frames(F::TEXT, "\xf2\x48\xcd\xc9\xc9\x07\x00".b), HELLO
  good "in fragments", frames(F::TEXT, "\xf2\x48\xcd\xc9\xc9\x07\x00".b, fragment: 3), HELLO
  good "stored", frames(F::TEXT, "\x00\x05\x00\xfa\xffHello\x00".b), HELLO
  good "a last block", frames(F::TEXT, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00".b), HELLO
  good "a last block, bare", frames(F::TEXT, "\xf3\x48\xcd\xc9\xc9\x07\x00".b), HELLO
  good "two blocks", frames(F::TEXT, "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00".b), HELLO
  good "two streams", frames(F::TEXT, "\xf3\x48\xcd\xc9\xc9\x07\x00\xf2\x48\xcd\xc9\xc9\x07\x00".b), echo("HelloHello")
  good "with its tail", frames(F::TEXT, deflate("Hello") + TAIL), HELLO
  good "empty", frames(F::TEXT, "\x00".b), echo("")
  good "empty, of no bytes", frames(F::BINARY, "".b), echo("", F::BINARY)
  good "plain ones between", message(F::TEXT, LONG) + F.frame(F::TEXT, "plain") + message(F::BINARY, LONG),
       echo(LONG), echo("plain"), echo(LONG, F::BINARY)
  good "a plain one in fragments", F.frame(F::TEXT, "a", fin: false) + F.frame(F::CONTINUATION, "b"), echo("ab")
  halves = deflate(LONG)
  good "pings and empty fragments between",
       F.frame(F::TEXT, "", fin: false, rsv: 4) + F.frame(F::PING, "p") + F.frame(F::CONTINUATION, halves[0, 9], fin: false) +
       F.frame(F::CONTINUATION, "", fin: false) + F.frame(F::PING, "q") + F.frame(F::CONTINUATION, halves[9..], fin: false) +
       F.frame(F::CONTINUATION, ""), [F::PONG, "p"], [F::PONG, "q"], echo(LONG)
  good "characters in many fragments", message(F::TEXT, "\u03ba\u1f79\u{1f600}" * 50, fragment: 1, level: 0), echo("\u03ba\u1f79\u{1f600}" * 50)
  (9..15).each { |bits| good "window of #{bits} bits", message(F::TEXT, LONG * 20, window: bits), echo(LONG * 20) }
  [Zlib::HUFFMAN_ONLY, Zlib::RLE, Zlib::FIXED, Zlib::FILTERED].each do |strategy|
    good "strategy #{strategy}", message(F::TEXT, LONG, strategy: strategy), echo(LONG)
  end
  bad "a close inside", 1000, F.frame(F::TEXT, halves[0, 9], fin: false, rsv: 4) + F.close + F.frame(F::CONTINUATION, "\xff")
  good "exactly the limit", message(F::TEXT, "0" * LIMIT), echo("0" * LIMIT)
  good "hundreds of large ones at once", message(F::TEXT, "0" * 100_000) * 100, *([echo("0" * 100_000)] * 100)

  bad "RSV1 in a continuation", 1002, F.frame(F::TEXT, halves[0, 9], fin: false, rsv: 4) + F.frame(F::CONTINUATION, halves[9..], rsv: 4)
  bad "RSV1 in a continuation of a plain one", 1002, F.frame(F::TEXT, "a", fin: false) + F.frame(F::CONTINUATION, "b", rsv: 4)
  [F::PING, F::PONG, F::CLOSE].each { |opcode| bad "RSV1 in opcode #{opcode}", 1002, F.frame(opcode, "", rsv: 4) }
  [1, 2, 3, 5, 6, 7].each { |rsv| bad "RSV #{rsv}", 1002, message(F::TEXT, LONG) + frames(F::TEXT, halves, rsv: rsv), echo(LONG) }
  bad "a block of no kind", 1007, frames(F::BINARY, "\x06".b)
  bad "noise", 1007, frames(F::BINARY, "\xff\xfe\xfd\xfc\xfb\xfa".b)
  bad "cut off", 1007, frames(F::BINARY, "\x00\x05\x00\xfa\xffHel".b)
  bad "cut off in its header", 1007, frames(F::BINARY, "\x00\x05".b)
  bad "lengths that differ", 1007, message(F::TEXT, LONG) + frames(F::BINARY, "\x00\x05\x00\x05\x00Hello\x00".b), echo(LONG)
  bad "a window of the message before", 1007, frames(F::TEXT, deflate("Hello")) + frames(F::TEXT, "\xf2\x00\x11\x00\x00".b), HELLO
  bad "not UTF-8", 1007, message(F::TEXT, "ab\xff".b)
  bad "half a character", 1007, message(F::TEXT, "\xce".b)
  bad "not UTF-8, its end not sent", 1007, message(F::TEXT, "#{LONG}\xed\xa0#{LONG}".b, level: 0)[0, 4500]
  good "not UTF-8, but binary", message(F::BINARY, "ab\xff".b), echo("ab\xff".b, F::BINARY)

  # ---- bombs ----

  bad "a byte over the limit", 1009, message(F::TEXT, "0" * (LIMIT + 1))
  bad "a megabyte in a KiB", 1009, message(F::BINARY, "\0" * 1_048_576)
  bad "a hundred of them in one", 1009, message(F::BINARY, "\0" * 104_857_600)
  bad "its end not sent", 1009, message(F::BINARY, "\0" * 1_048_576)[0, 600]
  bad "in fragments", 1009, message(F::BINARY, "\0" * 1_048_576, fragment: 10)
  bad "behind a good one", 1009, message(F::TEXT, "0" * LIMIT) + message(F::TEXT, "0" * (LIMIT + 1)), echo("0" * LIMIT)
  bad "of empty blocks", 1009, frames(F::BINARY, "\x00\x00\x00\xff\xff".b * 60_000)
  bad "of empty streams", 1009, frames(F::BINARY, "\x03\x00".b * 150_000)
  bad "a header that announces too much", 1009, "\xc2\xff\x00\x00\x00\x00\x40\x00\x00\x00".b + F::MASK
end
