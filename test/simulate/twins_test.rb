# frozen_string_literal: true

# The model of the hub (hub.rb) says what the hub of the core says: both get the same frames in the same histories.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/pubsub/hub"
require "simulate/runs"

module Simulate
  # The hub in C, behind sockets. After each frame it is asked for an echo on every link, so what it said is all there.
  class RealHub
    TYPES = { 1 => :subscribe, 2 => :unsubscribe, 3 => :message, 4 => :replay, 5 => :begin, 6 => :end, 7 => :keep }.freeze
    KINDS = %i[whole gap unknown none].freeze
    SYNC = "sync"
    TEXT = 1
    ECHO = 4
    ENGINE = 8
    GAP = 64
    Rule = Struct.new(:channel, :pattern, :messages, :ttl_ms, :bytes)
    Frames = Rondo::PubSub::RelayFrames

    def initialize(sizes, limit)
      settings = Rondo::Settings::Resolved.new({ history_messages: [limit, "test"] })
      @hub = Rondo::Hub.new(settings, Rondo::Scoreboard.new(1), log: StreamsModel::Silence.new, env: {})
      sizes.each { |channel, size| @hub.keep(Rule.new(channel, false, size, 0, 0)) }
      @syncs = 0
      link_worker
      link_engine
      say(@worker)
    end

    # @return [Array(Array, Array)] what it says to the worker, and to the engine
    def from_worker(type, channel, *rest)
      case type
      when :subscribe then put(@worker, 1, 0, channel)
      when :unsubscribe then put(@worker, 2, 0, channel)
      when :publish then put(@worker, 3, TEXT | ENGINE, channel, rest.first)
      when :replay then put(@worker, 4, 0, channel, [rest[1], 1 << 20].pack("Q>2"), rest[0])
      end
      say(@worker)
    end

    def from_engine(type, channel, *rest)
      case type
      when :message then @engine.write(Frames.publish(channel, text(rest[1]), rest[0]))
      when :gap then @engine.write(Frames.gap(channel, rest[0]))
      when :copy then put_copy(channel, *rest)
      when :begins_at then @engine.write(Frames.begins_at(rest[0]))
      end
      say(@engine)
    end

    def engine_again
      @hub.unlink(@number)
      @engine.read
      @engine.close
      link_engine
      say(@worker)
    end

    def worker_again
      @hub.unlink(@worker_number)
      @worker.close
      link_worker
      say(@worker)
    end

    def close
      @hub.close
      [@worker, @engine].each(&:close)
    end

    private

    # SYNC is the first topic.
    def link_worker
      @worker_number, @worker = @hub.link(0)
      @syncs += 1
      put(@worker, 1, 0, SYNC)
    end

    def link_engine
      @number, @engine = @hub.link_engine(true)
    end

    def put(io, type, flags, channel, payload = "", id = 0)
      io.write([type, flags, channel.bytesize, payload.bytesize, id].pack(Frames::HEAD) + channel.b + payload.b)
    end

    def put_copy(channel, floor, known, number, messages)
      frames = messages.map { |id, words| Frames.publish(channel, text(words), id) }
      @engine.write(Frames.copy_begin(channel, floor, known, known, number + @syncs), *frames, Frames.copy_end(channel))
    end

    def text(bytes) = bytes.dup.force_encoding(Encoding::UTF_8)

    # An answer to a replay comes after all that was read with it, so a second echo is behind it.
    def say(from)
      put(from, 3, TEXT, SYNC) if from.equal?(@engine)
      said = [[], []]
      2.times do |round|
        put(@worker, 3, TEXT | ECHO, SYNC) unless round.zero? && from.equal?(@engine)
        said[0].concat(read_until_echo(@worker))
        put(@worker, 3, TEXT | ENGINE, SYNC)
        said[1].concat(read_until_echo(@engine).map { |type, channel, *rest| [type, channel, *rest.last(1)] })
      end
      said
    end

    def read_until_echo(io)
      frames = []
      loop do
        frame = read_frame(io)
        return frames if frame[1] == SYNC && frame[0] == :message

        frames << frame unless frame[0] == :keep || frame[1] == SYNC
      end
    end

    def read_frame(io)
      io.wait_readable(30) or raise "the hub says nothing"
      number, flags, channel_bytes, payload_bytes, id = io.read(16).unpack(Frames::HEAD)
      channel = io.read(channel_bytes)
      payload = io.read(payload_bytes)
      type = flags.anybits?(GAP) ? :gap : TYPES.fetch(number)
      [type, channel, *values(type, id, payload)]
    end

    def values(type, id, payload)
      case type
      when :subscribe, :gap then [id]
      when :replay then [id - @syncs]
      when :message then [id, payload]
      when :begin then [payload.unpack1("Q>")]
      when :end then [payload.unpack1("Q>"), KINDS.fetch(id)]
      else []
      end
    end
  end

  # Both of them.
  class Twins
    def initialize(sizes, wall_us, limit)
      @model = Hub.new(sizes, wall_us, limit)
      @real = RealHub.new(sizes, limit)
      @to_worker = []
      @to_engine = []
    end

    attr_reader :to_worker, :to_engine

    def engine_id = @model.engine_id
    def from_worker(*frame) = compare(frame) { |hub| hub.from_worker(*frame) }
    def from_engine(*frame) = compare(frame) { |hub| hub.from_engine(*frame) }
    def engine_again = compare(["another engine"], &:engine_again)

    def worker_again
      @to_worker.clear
      compare(["another worker"], &:worker_again)
    end

    def close = @real.close

    private

    def compare(frame)
      yield @model
      worker = @model.to_worker.shift(@model.to_worker.size)
      engine = @model.to_engine.shift(@model.to_engine.size)
      said = yield @real
      differ(frame, "worker", worker.map { |each| comparable(*each) }, said[0])
      differ(frame, "engine", engine.map { |each| comparable_for_engine(*each) }, said[1])
      @to_worker.concat(worker)
      @to_engine.concat(engine)
    end

    def differ(frame, whom, model, real)
      raise "after #{frame}: the model says to the #{whom} #{model}, the hub #{real}" unless model == real
    end

    # BEGIN of the model also has how it ends, and up to where messages are missing.
    def comparable(type, channel, *rest)
      return [type, channel, rest.first] if type == :begin

      [type, channel, *rest.map { |each| each.is_a?(String) ? each.b : each }]
    end

    # The number of the rule is the id of what is published.
    def comparable_for_engine(type, channel, *rest)
      type == :publish ? [:message, channel, rest.first.b] : [type, channel, *rest]
    end
  end
end

class TwinsTest < Minitest::Test
  HISTORIES = 60
  # The clock of Redis is ahead of the hub's, which nobody can set here.
  AHEAD = 10 * 3_600_000_000

  def test_the_model_says_what_the_hub_says
    base = (Time.now.to_r * 1_000_000).to_i + AHEAD
    1.upto(HISTORIES) do |seed|
      hubs = []
      make = ->(sizes, _wall_us, limit) { Simulate::Twins.new(sizes, base - AHEAD, limit).tap { |hub| hubs << hub } }
      _, failure = Simulate.try(seed, new_hub: make, base: base)
      assert_nil failure&.to_s
    ensure
      hubs.each(&:close)
    end
  end
end
