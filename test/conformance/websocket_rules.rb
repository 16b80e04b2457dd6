# frozen_string_literal: true

# What a WebSocket server has to answer, as data: the frames that the client sends, and the frames that come back. Run
# by test_websocket.rb whole, frame by frame, in odd pieces and byte by byte. Rows with a number belong to the
# well-known suite; TABLE says how many each of its groups has. Rows of a group with a word ("3 more") are our own.
# Large messages: websocket_large_rules.rb.
# SPDX-License-Identifier: MIT

require_relative "../support/websocket_frames"

module WebsocketRules
  TABLE = {
    "1.1" => 8, "1.2" => 8, "2" => 11, "3" => 7, "4.1" => 5, "4.2" => 5, "5" => 20,
    "6.1" => 3, "6.2" => 4, "6.3" => 2, "6.4" => 4, "6.5" => 5, "6.6" => 11, "6.7" => 4, "6.8" => 2, "6.9" => 4,
    "6.10" => 3, "6.11" => 5, "6.12" => 8, "6.13" => 5, "6.14" => 10, "6.15" => 1, "6.16" => 3, "6.17" => 5,
    "6.18" => 5, "6.19" => 5, "6.20" => 7, "6.21" => 8, "6.22" => 34, "6.23" => 7,
    "7.1" => 6, "7.3" => 6, "7.5" => 1, "7.7" => 13, "7.9" => 11, "7.13" => 2,
    "9.1" => 6, "9.2" => 6, "9.3" => 9, "9.4" => 9, "9.5" => 6, "9.6" => 6, "9.7" => 6, "9.8" => 6, "10.1" => 1
  }.freeze

  # How a row is sent; a number is the size of each write in bytes.
  CHOPS = { "whole" => nil, "frame by frame" => :frames, "in pieces" => 997, "in odd pieces" => 7,
            "byte by byte" => 1 }.freeze
  # A row that would need more writes is not sent in that way.
  WRITES_MAX = 2000

  # @!attribute numbers [Array<String>] of the suite; the same bytes may have several, sent differently there
  # @!attribute group [String]
  # @!attribute frames [Array<String>] of the client
  # @!attribute answers [Array<Array(Integer, String)>] opcode and payload of each frame but the last Close
  # @!attribute code [Integer, nil] of the Close; nil: without one
  # @!attribute writes [Integer, nil] bytes of each write: sent in this way and in no other
  Row = Struct.new(:numbers, :group, :name, :frames, :answers, :code, :writes, keyword_init: true) do
    def bytes
      frames.join
    end

    def sent?(chop)
      return writes == chop if writes
      return frames.size > 1 if chop == :frames

      chop.nil? || bytes.bytesize / chop <= WRITES_MAX
    end
  end

  F = WebsocketFrames
  ROWS = []

  module_function

  # The frames, then a Close of 1000, which is answered in kind.
  def good(number, name, frames, *answers, writes: nil)
    add(number, name, [*frames, F.close], answers, 1000, writes)
  end

  # The last byte is wrong; no byte follows it.
  def bad(number, name, code, frames, *answers)
    add(number, name, [*frames], answers, code, nil)
  end

  def add(number, name, frames, answers, code, writes)
    numbers = number.match?(/[a-z]/) ? [] : number.split
    group = numbers.empty? ? number : numbers.first.rpartition(".").first
    ROWS << Row.new(numbers: numbers, group: group, name: "#{number}: #{name}", frames: frames, answers: answers,
                    code: code, writes: writes)
  end

  def text(payload, **options)
    F.frame(F::TEXT, payload, **options)
  end

  def binary(payload, **options)
    F.frame(F::BINARY, payload, **options)
  end

  def more(payload, **options)
    F.frame(F::CONTINUATION, payload, **options)
  end

  def ping(payload = "", **options)
    F.frame(F::PING, payload, **options)
  end

  # A text message of these fragments.
  def fragments(*parts)
    parts.each_with_index.map do |part, index|
      F.frame(index.zero? ? F::TEXT : F::CONTINUATION, part, fin: index == parts.size - 1)
    end
  end

  def echo(payload, opcode = F::TEXT)
    [opcode, payload.b]
  end

  def pong(payload)
    [F::PONG, payload.b]
  end

  # ---- 1: sizes ----

  [0, 125, 126, 127, 128, 65_535, 65_536, 65_536].each.with_index(1) do |size, number|
    writes = 997 if number == 8
    good "1.1.#{number}", "text of #{size}", text("*" * size), echo("*" * size), writes: writes
    good "1.2.#{number}", "binary of #{size}", binary("\xfe".b * size), echo("\xfe".b * size, F::BINARY), writes: writes
  end

  # ---- 2: pings ----

  good "2.1", "ping of nothing", ping, pong("")
  good "2.2", "ping of text", ping("text"), pong("text")
  good "2.3", "ping of bytes", ping("\x00\xff\xfe\xfd".b), pong("\x00\xff\xfe\xfd".b)
  good "2.4 2.6", "ping of 125", ping("\xfe".b * 125), pong("\xfe".b * 125)
  bad "2.5", "ping of 126", 1002, ping("\xfe".b * 126)
  good "2.7", "unsolicited empty pong", F.frame(F::PONG)
  good "2.8", "unsolicited pong", F.frame(F::PONG, "x")
  good "2.9", "unsolicited pong, then a ping", [F.frame(F::PONG, "x"), ping("p")], pong("p")
  good "2.10 2.11", "ten pings", (0..9).map { |i| ping("p#{i}") }, *(0..9).map { |i| pong("p#{i}") }

  # ---- 3: reserved bits ----

  bad "3.1", "RSV 1 in text", 1002, text("b", rsv: 1)
  bad "3.2", "RSV 2 behind a message", 1002, [text("a"), text("b", rsv: 2), ping], echo("a")
  bad "3.3", "RSV 3 behind a message", 1002, [text("a"), text("b", rsv: 3), ping], echo("a")
  bad "3.4", "RSV 4 behind a message", 1002, [text("a"), text("b", rsv: 4), ping], echo("a")
  bad "3.5", "RSV 5 in binary", 1002, binary("b", rsv: 5)
  bad "3.6", "RSV 6 in ping", 1002, ping("p", rsv: 6)
  bad "3.7", "RSV 7 in close", 1002, F.frame(F::CLOSE, "", rsv: 7)
  (1..7).each do |rsv|
    bad "3 more", "RSV #{rsv} in text", 1002, [text("a"), text("b", rsv: rsv)], echo("a")
    bad "3 more", "RSV #{rsv} in binary", 1002, binary("b", rsv: rsv)
    bad "3 more", "RSV #{rsv} in a continuation", 1002, [text("a", fin: false), more("b", rsv: rsv)]
    bad "3 more", "RSV #{rsv} in ping", 1002, [text("a"), ping("p", rsv: rsv)], echo("a")
    bad "3 more", "RSV #{rsv} in close", 1002, F.frame(F::CLOSE, "", rsv: rsv)
  end

  # ---- 4: reserved opcodes ----

  { "4.1" => 3..7, "4.2" => 11..15 }.each do |group, opcodes|
    first, second, *others = opcodes.to_a
    bad "#{group}.1", "opcode #{first}", 1002, F.frame(first)
    bad "#{group}.2", "opcode #{second} with a payload", 1002, F.frame(second, "reserved")
    others.each.with_index(3) do |opcode, number|
      bad "#{group}.#{number}", "opcode #{opcode} behind a message", 1002, [text("a"), F.frame(opcode), ping], echo("a")
    end
  end
  [*3..7, *11..15].each do |opcode|
    bad "4 more", "opcode #{opcode}", 1002, F.frame(opcode)
    bad "4 more", "opcode #{opcode} with a payload", 1002, [text("a"), F.frame(opcode, "reserved")], echo("a")
    bad "4 more", "opcode #{opcode} inside of a message", 1002, [text("a", fin: false), F.frame(opcode, "reserved")]
  end

  # ---- 5: fragments ----

  bad "5.1", "ping in fragments", 1002, [ping("a", fin: false), more("b")]
  bad "5.2", "pong in fragments", 1002, [F.frame(F::PONG, "a", fin: false), more("b")]
  good "5.3 5.4 5.5", "two fragments", fragments("frag", "ment"), echo("fragment")
  good "5.6 5.7 5.8", "ping between fragments", [text("a", fin: false), ping("p"), more("b")], pong("p"), echo("ab")
  bad "5.9 5.10 5.11", "continuation of nothing", 1002, [more("a"), text("b")]
  bad "5.12 5.13 5.14", "continuation of nothing, not the last", 1002, [more("a", fin: false), text("b")]
  bad "5.15", "continuation behind a message", 1002, [*fragments("a", "b"), more("c", fin: false), text("d")], echo("ab")
  bad "5.16", "continuation of nothing in front of a message", 1002, [more("a", fin: false), *fragments("b", "c")] * 2
  bad "5.17", "continuation of nothing, the last, in front of a message", 1002, [more("a"), *fragments("b", "c")] * 2
  bad "5.18", "a message inside a message", 1002, [text("a", fin: false), text("b")]
  good "5.19 5.20", "five fragments with pings",
       [text("f0", fin: false), more("f1", fin: false), ping("1"), more("f2", fin: false), more("f3", fin: false),
        ping("2"), more("f4")], pong("1"), pong("2"), echo("f0f1f2f3f4")
  good "5 more", "empty fragments", fragments("", "", ""), echo("")
  good "5 more", "an empty one between", fragments("a", "", "b"), echo("ab")
  good "5 more", "a pong between fragments", [text("a", fin: false), F.frame(F::PONG, "p"), more("b")], echo("ab")
  bad "5 more", "a binary one inside a text", 1002, [text("a", fin: false), binary("b")]

  # ---- 6: UTF-8, as text and as the bytes of a list for stress ----

  KOSME = "\u03ba\u1f79\u03c3\u03bc\u03b5"
  HELLO = "Hello-\u00b5@\u00df\u00f6\u00e4\u00fc\u00e0\u00e1-UTF-8!!"
  BROKEN = KOSME.b + "\xed\xa0\x80edited".b

  good "6.1.1", "empty text", text(""), echo("")
  good "6.1.2", "three empty fragments", fragments("", "", ""), echo("")
  good "6.1.3", "the middle one is not empty", fragments("", "middle", ""), echo("middle")
  good "6.2.1", "in one frame", text(HELLO), echo(HELLO)
  good "6.2.2", "cut between characters", fragments(HELLO[0, 9], HELLO[9..]), echo(HELLO)
  good "6.2.3", "cut at every byte", fragments(*HELLO.b.chars), echo(HELLO)
  good "6.2.4", "cut at every byte, no ASCII", fragments(*KOSME.b.chars), echo(KOSME)
  bad "6.3.1", "surrogates", 1007, text(BROKEN)
  bad "6.3.2", "surrogates, cut at every byte", 1007, fragments(*BROKEN.chars)
  # Refused at the first invalid byte, although the frame or the message is not complete. The rest of the message is
  # never sent.
  bad "6.4.1", "fails in the second fragment", 1007,
      [text(KOSME, fin: false), more("\xf4\x90\x80\x80".b, fin: false)]
  bad "6.4.2", "fails at the second byte of a character", 1007,
      [text(KOSME.b + "\xf4".b, fin: false), more("\x90".b, fin: false)]
  whole = text(KOSME.b + "\xf4\x90\x80\x80edited".b)
  bad "6.4.3", "fails inside of the frame", 1007, whole[0, 6 + 15]
  bad "6.4.4", "fails inside of the frame, at the second byte", 1007, whole[0, 6 + 13]

  STARTS = [0xc0..0xdf, 0xe0..0xef, 0xf0..0xf7, 0xf8..0xfb, 0xfc..0xfd].freeze
  INCOMPLETE = %w[c0 e080 f08080 f8808080 fc80808080 df efbf f7bfbf fbbfbfbf fdbfbfbfbf].freeze
  # Valid texts as text, others in hexadecimal digits.
  STRESS = {
    "6.5" => ["hello$world", "hello\u00a2world", "hello\u20acworld", "hello\u{24b62}world", KOSME],
    "6.6" => (1..11).map { |size| KOSME.b[0, size].unpack1("H*") },
    "6.7" => ["\u0000", "\u0080", "\u0800", "\u{10000}"],
    "6.8" => %w[f888808080 fc8480808080],
    "6.9" => ["\u007f", "\u07ff", "\uffff", "\u{10ffff}"],
    "6.10" => %w[f7bfbfbf fbbfbfbfbf fdbfbfbfbfbf],
    "6.11" => ["\ud7ff", "\ue000", "\ufffd", "\u{10ffff}", "f4908080"],
    "6.12" => %w[80 bf 80bf 80bf80 80bf80bf 80bf80bf80 80bf80bf80bf].push([*0x80..0xbf].pack("C*").unpack1("H*")),
    "6.13" => STARTS.map { |range| range.map { |byte| format("%x20", byte) }.join },
    "6.14" => INCOMPLETE,
    "6.15" => [INCOMPLETE.join],
    "6.16" => %w[fe ff fefeffff],
    "6.17" => %w[c0af e080af f08080af f8808080af fc80808080af],
    "6.18" => %w[c1bf e09fbf f08fbfbf f887bfbfbf fc83bfbfbfbf],
    "6.19" => %w[c080 e08080 f0808080 f880808080 fc8080808080],
    "6.20" => %w[eda080 edadbf edae80 edafbf edb080 edbe80 edbfbf],
    "6.21" => %w[eda080edb080 eda080edbfbf edadbfedb080 edadbfedbfbf edae80edb080 edae80edbfbf edafbfedb080 edafbfedbfbf],
    "6.22" => (0..16).flat_map { |plane| [0xfffe, 0xffff].map { |last| [(plane << 16) | last].pack("U") } },
    "6.23" => (0xfff9..0xffff).map { |point| [point].pack("U") }
  }.freeze
  STRESS.each do |group, list|
    list.each.with_index(1) do |entry, number|
      bytes = entry.match?(/\A\h+\z/) ? [entry].pack("H*").force_encoding("UTF-8") : entry
      next good("#{group}.#{number}", bytes.b.inspect, text(bytes), echo(bytes)) if bytes.valid_encoding?

      bad "#{group}.#{number}", bytes.b.inspect, 1007, text(bytes)
      bad "6 more", "#{bytes.b.inspect} behind a fragment", 1007, [text("ok", fin: false), more(bytes)]
    end
  end
  good "6 more", "cut inside of characters", fragments(*"\u{10ffff}\u20ac".b.chars), echo("\u{10ffff}\u20ac")
  %w[c020 e020 f020 f8 fc c3 e280 f09f98 ef f0].each do |hex|
    bad "6 more", "invalid #{hex}", 1007, text([hex].pack("H*"))
  end

  # ---- 7: closing ----

  bad "7.1.1", "close behind a message", 1000, [text("a"), F.close], echo("a")
  bad "7.1.2", "two of them", 1000, [F.close, F.close]
  bad "7.1.3", "a ping behind it", 1000, [F.close, ping]
  bad "7.1.4", "a message behind it", 1000, [F.close, text("b")]
  bad "7.1.5", "inside of a message", 1000, [text("a", fin: false), F.close, more("b")]
  bad "7.1.6", "behind a large message", 1000, [text("*" * 262_144), F.close, ping], echo("*" * 262_144)
  bad "7.3.1", "close without a code", nil, F.frame(F::CLOSE)
  bad "7.3.2", "close with half a code", 1002, F.frame(F::CLOSE, "a")
  bad "7.3.3", "close with a code", 1000, F.close
  bad "7.3.4", "close with a reason", 1000, F.close(1000, "Hello World!")
  bad "7.3.5", "reason of 123 bytes", 1000, F.close(1000, "*" * 123)
  bad "7.3.6", "reason of 124 bytes", 1002, F.close(1000, "*" * 124)
  bad "7.5.1", "reason that is not UTF-8", 1007, F.close(1000, BROKEN)
  [*1000..1003, *1007..1011, 3000, 3999, 4000, 4999].each.with_index(1) do |code, number|
    bad "7.7.#{number}", "code #{code}", code, F.close(code)
  end
  # 1014 has been registered since the suite was written.
  [0, 999, 1004, 1005, 1006, 1014, 1015, 1016, 1100, 2000, 2999].each.with_index(1) do |code, number|
    bad "7.9.#{number}", "code #{code}", code == 1014 ? 1014 : 1002, F.close(code)
  end
  [5000, 65_535].each.with_index(1) { |code, number| bad "7.13.#{number}", "code #{code}", 1002, F.close(code) }
  [1012, 1013].each { |code| bad "7 more", "code #{code}", code, F.close(code) }
  bad "7 more", "reason cut inside of a character", 1007, F.close(1000, "\u20ac".b[0, 2])

  # ---- wrong headers ----

  bad "headers", "a frame without a mask", 1002, text("a", mask: nil)
  bad "headers", "length in more bytes than it needs", 1002, "\x81\xfe\x00\x7d".b
  bad "headers", "length of 8 bytes for 65535", 1002, "\x82\xff\x00\x00\x00\x00\x00\x00\xff\xff".b
  bad "headers", "length with its top bit", 1002, "\x82\xff\x80\x00\x00\x00\x00\x00\x00\x00".b
  bad "headers", "an announced length over the limit", 1009, "\x82\xff\x00\x00\x00\x00\x40\x00\x00\x00".b + F::MASK
  bad "headers", "fragments that add up over the limit", 1009,
      [text("*" * 200_000, fin: false), "\x80\xfe\xf4\x80".b + F::MASK]

  # ---- 10: behaviour that libraries add ----

  good "10.1.1", "64 KiB in fragments of 1300", fragments(*("*" * 65_536).scan(/.{1,1300}/)), echo("*" * 65_536)
end
