# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Random WebSocket connections, most of them damaged somewhere, sent to the server and judged by
# Python's wsproto: both must answer the same messages and end with the same code. Where they may
# differ is listed in REASONS. The same connections each time; RONDO_TEST_SEED and RONDO_TEST_SEQUENCES
# ask for others, and for more.

require "json"
require "minitest/autorun"
require "open3"
require_relative "../support/raw_client"
require_relative "../support/server_process"
require_relative "../support/websocket_peer"

# Makes up the bytes of one connection after the other.
class RandomConnections
  F = WebsocketFrames
  CODES = [1000, 1001, 1003, 1007, 1011, 1013, 3000, 4999].freeze
  BAD_CODES = [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535].freeze
  CHARACTERS = ["a", "z", "\u00e4", "\u20ac", "\ud7ff", "\ue000", "\u{1f600}", "\u{10ffff}", "\u0000"].freeze
  BROKEN = ["\x80", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff", "\xf0\x9f"].map(&:b).freeze
  SIZES = [0, 1, 2, 5, 20, 124, 125, 126, 127, 300, 65_535, 65_536].freeze

  def initialize(seed)
    @random = Random.new(seed)
  end

  # @return [String]
  def next
    frames = Array.new(1 + @random.rand(5)) { message }.flatten
    frames << F.close(pick(CODES), text(pick([0, 3, 20]))) if chance(3, 4)
    frames << F.frame(F::CLOSE) if chance(1, 10)
    frames = damage_frames(frames) if chance(1, 2)
    bytes = frames.join
    chance(1, 2) ? damage_bytes(bytes) : bytes
  end

  private

  def chance(part, of)
    @random.rand(of) < part
  end

  def pick(list)
    list[@random.rand(list.size)]
  end

  # Large ones are rare.
  def size
    chance(1, 20) ? pick(SIZES) : pick(SIZES.first(8))
  end

  def text(characters)
    Array.new(characters) { pick(CHARACTERS) }.join
  end

  # A message in fragments of any size, with pings and pongs between them.
  def message
    payload = chance(1, 2) ? text(size).b : @random.bytes(size)
    opcode = payload.dup.force_encoding("UTF-8").valid_encoding? && chance(2, 3) ? F::TEXT : F::BINARY
    parts = chance(1, 2) ? [payload] : cut(payload)
    parts.each_with_index.flat_map do |part, index|
      frame = F.frame(index.zero? ? opcode : F::CONTINUATION, part, fin: index == parts.size - 1, mask: @random.bytes(4))
      chance(1, 6) ? [frame, control] : [frame]
    end
  end

  def cut(payload)
    cuts = Array.new(@random.rand(4)) { @random.rand(payload.bytesize + 1) }.sort
    [0, *cuts, payload.bytesize].each_cons(2).map { |from, to| payload.byteslice(from, to - from) }
  end

  def control
    F.frame(pick([F::PING, F::PONG]), @random.bytes(pick([0, 4, 125])), mask: @random.bytes(4))
  end

  # One frame goes, comes twice, changes its place, or one that breaks a rule comes in.
  def damage_frames(frames)
    at = @random.rand(frames.size)
    case @random.rand(4)
    when 0 then frames.delete_at(at)
    when 1 then frames.insert(at, frames[at])
    when 2 then frames.insert(@random.rand(frames.size), frames.delete_at(at))
    else frames.insert(at, bad_frame)
    end
    frames
  end

  def bad_frame
    case @random.rand(9)
    when 0 then F.frame(pick([3, 7, 11, 15]), "x")
    when 1 then F.frame(F::TEXT, "x", rsv: 1 + @random.rand(7))
    when 2 then F.frame(F::TEXT, "x", mask: nil)
    when 3 then F.frame(F::PING, "x" * 126)
    when 4 then F.frame(pick([F::PING, F::CLOSE]), "", fin: false)
    when 5 then F.frame(F::CLOSE, "x")
    when 6 then F.close(pick(BAD_CODES))
    when 7 then F.close(1000, pick(BROKEN))
    else F.frame(F::TEXT, text(3).b + pick(BROKEN) + text(pick([0, 1, 3])).b)
    end
  end

  # A bit is another, a byte goes or comes in, or the end is missing.
  def damage_bytes(bytes)
    return bytes if bytes.empty?

    at = @random.rand([bytes.bytesize, 400].min)
    case @random.rand(4)
    when 0 then bytes.setbyte(at, bytes.getbyte(at) ^ (1 << @random.rand(8)))
    when 1 then bytes.slice!(at, 1)
    when 2 then bytes.insert(at, @random.bytes(1))
    else bytes = bytes.byteslice(0, at)
    end
    bytes
  end
end

class TestWebsocketJudge < Minitest::Test
  APP = File.expand_path("../conformance/websocket.ru", __dir__)
  F = WebsocketFrames
  SEED = Integer(ENV.fetch("RONDO_TEST_SEED", "1"))
  SEQUENCES = Integer(ENV.fetch("RONDO_TEST_SEQUENCES", "400"))
  PYTHON = "/usr/bin/python3"

  # What an end may be, by the judge and by the server, and why; the answers before it are the same.
  REASONS = {
    "the judge has no limit for messages, and takes what comes for the begin of a long one" =>
      ->(judge, server) { [0, 1007].include?(judge) && server == 1009 },
    "the judge does not know the code 1014" => ->(judge, server) { judge == 1002 && server == 1014 }
  }.freeze

  # The server fails at the first byte that is wrong, the judge once it has a header or a control frame
  # whole. Whatever comes behind such bytes, the judge must say the same in the end.
  BEHIND = ["\0" * 200, F.frame(F::TEXT, "a") * 40, F.frame(F::CONTINUATION, "a") * 40].freeze

  def test_the_same_verdicts
    skip "python3-wsproto is not installed" unless judge_there?
    random = RandomConnections.new(SEED)
    connections = Array.new(SEQUENCES) { random.next }
    verdicts = judge(connections)
    differences = ServerProcess.run(APP) do |server|
      connections.zip(verdicts).filter_map { |bytes, verdict| compare(bytes, verdict, answer(server, bytes, verdict)) }
    end
    assert_empty differences.first(5), "#{differences.size} of #{SEQUENCES} with the seed #{SEED}"
    check_variety(verdicts)
  end

  private

  def judge_there?
    _, status = Open3.capture2e(PYTHON, "-c", "import wsproto")
    status.success?
  rescue Errno::ENOENT
    false
  end

  # @return [Array<Array(Array, Integer)>] frames and code
  def judge(connections)
    output, status = Open3.capture2(PYTHON, File.expand_path("websocket_judge.py", __dir__),
                                    stdin_data: connections.map { |bytes| "#{bytes.unpack1("H*")}\n" }.join)
    assert_predicate status, :success?
    output.lines.map { |line| JSON.parse(line) }
  end

  # What the server makes of it. One that goes on is told the end once it has answered what the judge
  # answers: before that, an end would take answers with it.
  def answer(server, bytes, verdict)
    peer = WebsocketPeer.new(server.url)
    send_all(peer, bytes)
    frames = []
    while (frames.size < verdict[0].size || verdict[1].positive?) && (frame = peer.next_frame)
      frames << frame
    end
    peer.half_close
    frames << frame while (frame = peer.next_frame)
    shown(frames)
  rescue Errno::ECONNRESET, Errno::EPIPE, Errno::ENOTCONN
    shown(frames)
  ensure
    peer&.close
  end

  def send_all(peer, bytes)
    peer.send_bytes(bytes)
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil # it knows enough
  end

  def shown(frames)
    close = frames.last&.opcode == F::CLOSE ? frames.pop : nil
    code = close ? close.payload.unpack1("n") || 1005 : 0
    [frames.map { |frame| [frame.opcode, frame.payload.unpack1("H*")] }, code]
  end

  # Pongs and messages are answered apart from each other: the application takes its time.
  def sorted(frames)
    frames.partition { |opcode, _| opcode == F::PONG }
  end

  def compare(bytes, verdict, answer)
    if sorted(verdict[0]) == sorted(answer[0])
      return if verdict[1] == answer[1] || fails_early?(bytes, verdict[1], answer[1])
      return if REASONS.each_value.any? { |reason| reason.call(verdict[1], answer[1]) }
    end
    "#{bytes.unpack1("H*")[0, 2000]}: #{answer.inspect[0, 1000]} instead of #{verdict.inspect[0, 1000]}"
  end

  def fails_early?(bytes, end_code, server)
    end_code.zero? && [1002, 1007].include?(server) &&
      judge(BEHIND.map { |more| bytes + more }).all? { |_, code| code == server }
  end

  # Connections that all fail alike would prove little.
  def check_variety(verdicts)
    return unless SEQUENCES >= 400

    [0, 1000, 1002, 1005, 1007, 3000].each do |code|
      assert_operator verdicts.count { |_, end_code| end_code == code }, :>=, 5, "ends with #{code}"
    end
    assert_operator verdicts.sum { |answers, _| answers.size }, :>, SEQUENCES
  end
end
