# frozen_string_literal: true

# What a WebSocket server has to answer, as data: what the client sends, and the frames that come
# back. Run by test_websocket.rb whole, in odd pieces and byte by byte.
# SPDX-License-Identifier: MIT

require_relative "../support/websocket_frames"

module WebsocketRules
  # @!attribute group [String]
  # @!attribute bytes [String] of the client
  # @!attribute answers [Array<Array(Integer, String)>] opcode and payload of each frame but the last Close
  # @!attribute code [Integer, nil] of the Close; nil: without one
  Row = Struct.new(:group, :name, :bytes, :answers, :code, keyword_init: true)

  F = WebsocketFrames
  ROWS = []

  module_function

  # The frames, then a Close of 1000, which is answered in kind.
  def good(group, name, bytes, *answers)
    ROWS << Row.new(group: group, name: name, bytes: bytes + F.close, answers: answers, code: 1000)
  end

  # The last of the bytes is wrong; nothing is sent behind it.
  def bad(group, name, code, bytes, *answers)
    ROWS << Row.new(group: group, name: name, bytes: bytes, answers: answers, code: code)
  end

  def text(payload, **options)
    F.frame(F::TEXT, payload, **options)
  end

  def more(payload, **options)
    F.frame(F::CONTINUATION, payload, **options)
  end

  def ping(payload = "", **options)
    F.frame(F::PING, payload, **options)
  end

  def echo(payload, opcode = F::TEXT)
    [opcode, payload.b]
  end

  # ---- 1: sizes ----

  [0, 125, 126, 127, 128, 65_535, 65_536].each do |size|
    good "1.1", "text of #{size}", text("*" * size), echo("*" * size)
    good "1.2", "binary of #{size}", F.frame(F::BINARY, "\xfe".b * size), echo("\xfe".b * size, F::BINARY)
  end

  # ---- 2: pings ----

  ["", "text", "\x00\xff\xfe\xfd".b, "\xfe".b * 125].each do |payload|
    good "2", "ping of #{payload.bytesize}", ping(payload), [F::PONG, payload.b]
  end
  bad "2", "ping of 126", 1002, ping("\xfe".b * 126)
  good "2", "unsolicited pong", F.frame(F::PONG, "x") + ping("p"), [F::PONG, "p"]
  good "2", "ten pings", (0..9).map { |i| ping("p#{i}") }.join, *(0..9).map { |i| [F::PONG, "p#{i}"] }

  # ---- 3: reserved bits ----

  (1..7).each do |rsv|
    bad "3", "RSV #{rsv} in text", 1002, text("a") + text("b", rsv: rsv), echo("a")
    bad "3", "RSV #{rsv} in binary", 1002, F.frame(F::BINARY, "b", rsv: rsv)
    bad "3", "RSV #{rsv} in ping", 1002, text("a") + ping("p", rsv: rsv), echo("a")
    bad "3", "RSV #{rsv} in close", 1002, F.frame(F::CLOSE, "", rsv: rsv)
  end

  # ---- 4: reserved opcodes ----

  [*3..7, *11..15].each do |opcode|
    bad "4", "opcode #{opcode}", 1002, F.frame(opcode)
    bad "4", "opcode #{opcode} with a payload", 1002, text("a") + F.frame(opcode, "reserved"), echo("a")
  end

  # ---- 5: fragments ----

  bad "5", "ping in fragments", 1002, ping("a", fin: false)
  bad "5", "pong in fragments", 1002, F.frame(F::PONG, "a", fin: false)
  good "5", "two fragments", text("frag", fin: false) + more("ment"), echo("fragment")
  good "5", "empty fragments", text("", fin: false) + more("", fin: false) + more(""), echo("")
  good "5", "an empty one between", text("a", fin: false) + more("", fin: false) + more("b"), echo("ab")
  good "5", "ping between fragments", text("a", fin: false) + ping("p") + more("b"), [F::PONG, "p"], echo("ab")
  good "5", "five fragments with pings", (text("f0", fin: false) + ping("1") + more("f1", fin: false) + ping("2") +
    more("f2", fin: false) + more("f3", fin: false) + more("f4")), [F::PONG, "1"], [F::PONG, "2"], echo("f0f1f2f3f4")
  bad "5", "continuation of nothing", 1002, more("a") + text("b")
  bad "5", "continuation of nothing, not the last", 1002, more("a", fin: false)
  bad "5", "continuation behind a message", 1002, text("a") + more("b"), echo("a")
  bad "5", "a message inside a message", 1002, text("a", fin: false) + text("b")
  bad "5", "a binary one inside a text", 1002, text("a", fin: false) + F.frame(F::BINARY, "b")

  # ---- 6: UTF-8 ----

  VALID = ["Hello-\u00b5@\u00df\u00f6\u00e4\u00fc\u00e0\u00e1-UTF-8!!", "\u03ba\u1f79\u03c3\u03bc\u03b5", "\u0000", "\u0080",
           "\u0800", "\u{10000}", "\u007f", "\u07ff", "\ud7ff", "\ue000", "\uffff", "\ufffd", "\u{10ffff}", "\ufffe",
           *(1..16).map { |plane| [(plane << 16) | 0xfffe].pack("U") },
           *(1..16).map { |plane| [(plane << 16) | 0xffff].pack("U") }].freeze
  VALID.each { |valid| good "6", "valid #{valid.b.inspect}", text(valid), echo(valid) }
  good "6", "cut inside of characters", "\u{10ffff}\u20ac".b.chars.each_with_index.map { |byte, i|
    F.frame(i.zero? ? F::TEXT : F::CONTINUATION, byte, fin: i == 6)
  }.join, echo("\u{10ffff}\u20ac")

  INVALID = %w[80 bf 80bf 80bf80 c0 c020 e0 e020 f0 f020 f8 fc fe ff fefeffff c0af e080af f08080af f8808080af fc80808080af
               c1bf e09fbf f08fbfbf f887bfbfbf fc83bfbfbfbf c080 e08080 f0808080 f880808080 fc8080808080 eda080 edadbf
               edae80 edafbf edb080 edbe80 edbfbf eda080edb080 eda080edbfbf edadbfedb080 edadbfedbfbf edae80edb080
               edafbfedbfbf f4908080 f7bfbfbf f888808080 fbbfbfbfbf fc8480808080 fdbfbfbfbfbf cebae1bdb9cf83cebcceb5eda080
               e280 f09f98 c3 df ef efbf f7bfbf f0 f08080 f8808080 fc80808080].freeze
  INVALID.uniq.each do |hex|
    bad "6", "invalid #{hex}", 1007, text([hex].pack("H*"))
    bad "6", "invalid #{hex} behind a fragment", 1007, text("ok", fin: false) + more([hex].pack("H*"))
  end
  # At the first byte that rules it out, although the frame or the message is not complete.
  whole = text(["cebae1bdb9cf83cebcceb5f4908080656469746564"].pack("H*"))
  bad "6.4", "fails inside of the frame", 1007, whole[0, 6 + 13]
  bad "6.4", "fails in the second fragment", 1007,
      text(["cebae1bdb9cf83cebcceb5f4"].pack("H*"), fin: false) + more("\x90".b, fin: false)

  # ---- 7: closing ----

  bad "7.1", "close behind a message", 1000, text("a") + F.close, echo("a")
  bad "7.1", "what follows a close is ignored", 1000, F.close + text("b") + ping + F.close
  bad "7.1", "close inside of a message", 1000, text("a", fin: false) + F.close + more("b")
  bad "7.3", "close without a code", nil, F.frame(F::CLOSE)
  bad "7.3", "close with half a code", 1002, F.frame(F::CLOSE, "a")
  bad "7.3", "reason of 123 bytes", 1000, F.close(1000, "*" * 123)
  bad "7.3", "reason of 124 bytes", 1002, F.close(1000, "*" * 124)
  bad "7.5", "reason that is not UTF-8", 1007, F.close(1000, "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80".b)
  [*1000..1003, *1007..1014, 3000, 3999, 4000, 4999].each { |code| bad "7.7", "code #{code}", code, F.close(code) }
  [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].each do |code|
    bad "7.9", "code #{code}", 1002, F.close(code)
  end

  # ---- headers that lie ----

  bad "5.2", "a frame without a mask", 1002, text("a", mask: nil)
  bad "5.2", "length in more bytes than it needs", 1002, "\x81\xfe\x00\x7d".b
  bad "5.2", "length of 8 bytes for 65535", 1002, "\x82\xff\x00\x00\x00\x00\x00\x00\xff\xff".b
  bad "5.2", "length with its top bit", 1002, "\x82\xff\x80\x00\x00\x00\x00\x00\x00\x00".b
  bad "limit", "an announced length over the limit", 1009, "\x82\xff\x00\x00\x00\x00\x40\x00\x00\x00".b + F::MASK

  # ---- 9, 10: large ones ----

  [65_536, 262_144].each do |size|
    good "9", "text of #{size}", text("*" * size), echo("*" * size)
    pieces = ("*" * size).scan(/.{1,4096}/)
    frames = pieces.each_with_index.map do |piece, index|
      F.frame(index.zero? ? F::TEXT : F::CONTINUATION, piece, fin: index == pieces.size - 1)
    end
    good "9", "text of #{size} in fragments", frames.join, echo("*" * size)
  end
end
