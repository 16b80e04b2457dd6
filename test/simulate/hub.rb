# frozen_string_literal: true

# A model of the hub of a machine (ext/rondo/pubsub/hub.c, hub_interests.c, hub_replay.c, hub_streams.c and history.c)
# for channels with a rule, one worker and an engine with streams. twins_test.rb compares it with the hub itself.
#
# A frame is an Array: its type, then what it has.
# SPDX-License-Identifier: MIT

module Simulate
  # What the hub keeps of a channel. `is_loaded`: it is a copy of what Redis has.
  Record = Struct.new(:messages, :floor, :last_id, :is_loaded)
  # A channel that somebody wants. `asked`: of which engine a copy is asked. `known`: the last id of all at that time.
  # `number`: no other one has it.
  Topic = Struct.new(:asked, :known, :number)

  class Hub
    ASKS_MAX = 2

    # @return [Integer] the highest id of the engine
    attr_reader :engine_id
    attr_reader :to_worker, :to_engine

    # @param sizes [Hash{String => Integer}] of the rules
    # @param wall_us [Integer] what time it is here
    # @param limit [Integer] messages of all channels together
    def initialize(sizes, wall_us, limit)
      @sizes = sizes
      @limit = limit
      @last_id = @forgotten = @floor = wall_us
      @records = {}
      @order = []
      @topics = {}
      @count = 0
      @waiting = []
      @to_worker = []
      @to_engine = []
      @engines = 1
      @engine_id = 0
    end

    # The engine is another one: it is told everything.
    def engine_again
      @engines += 1
      @loading = nil
      @to_engine.clear
      @topics.each_key { |channel| @to_engine << [:subscribe, channel, last_delivered] }
      answer
    end

    # The worker has ended, and there is another one.
    def worker_again
      @waiting.clear
      @to_worker.clear
      unsubscribe(@topics.first.first) while @topics.any?
    end

    def from_worker(type, channel, *rest)
      case type
      when :subscribe then subscribe(channel)
      when :unsubscribe then unsubscribe(channel)
      when :publish then @to_engine << [:publish, channel, *rest]
      when :replay
        subscribe(channel)
        @waiting << [channel, *rest, 0]
        copied?(@waiting.last)
      end
      answer
    end

    def from_engine(type, channel, *rest)
      case type
      when :message then take(channel, *rest)
      when :gap then take_gap(channel, *rest)
      when :copy then load(channel, *rest)
      when :begins_at then @engine_id = [@engine_id, *rest].max
      end
      answer
    end

    private

    # ---- interests ----

    def subscribe(channel)
      return if @topics[channel]

      @topics[channel] = Topic.new(0, 0, @count += 1)
      @to_engine << [:subscribe, channel, 1]
    end

    def unsubscribe(channel)
      return unless @topics.delete(channel)

      @to_engine << [:unsubscribe, channel]
      forget(channel)
    end

    def last_delivered
      @engine_id.positive? ? @engine_id : 1
    end

    # ---- the history ----

    def forget(channel)
      @records.delete(channel) and @order.delete_if { |each, _| each == channel }
    end

    def add(channel, id, text)
      @last_id = id if id > @last_id
      record = @records[channel]
      return if record && id <= record.last_id
      return if record.nil? && id <= [@floor, @forgotten].max

      record ||= @records[channel] = Record.new([], [@floor, @forgotten].max, 0, false)
      record.messages << [id, text]
      record.last_id = id
      @order << [channel, id]
      drop(@order.index { |each, _| each == channel }) if record.messages.size > @sizes[channel]
      drop(0) while @order.size > @limit
    end

    def drop(index)
      channel, id = @order.delete_at(index)
      record = @records[channel]
      record.messages.shift
      record.floor = [record.floor, id].max
      return if record.messages.any? || record.is_loaded

      @forgotten = [@forgotten, record.floor].max
      @records.delete(channel)
    end

    # ---- from the engine ----

    def take(channel, id, text)
      @engine_id = id if id > @engine_id
      add(channel, id, text)
      @to_worker << [:message, channel, id, text] if @topics[channel]
    end

    def take_gap(channel, id)
      @engine_id = id if id > @engine_id
      record = @records[channel]
      record.floor = [record.floor, id].max if record
      @to_worker << [:gap, channel, id] if @topics[channel]
    end

    def load(channel, floor, known, number, messages)
      @engine_id = [@engine_id, *messages.map(&:first)].max
      topic = @topics[channel] or return
      return if topic.number != number

      topic.asked = 0
      topic.known = known
      @last_id = [@last_id, known, floor].max
      forget(channel)
      @records[channel] = Record.new([], floor, floor, true)
      messages.each { |id, text| add(channel, id, text) }
      @engine_id = [@engine_id, known].max
    end

    # ---- replays ----

    def answer
      while (first = @waiting.first)
        return unless copied?(first)

        @waiting.shift
        reply(*first)
      end
    end

    # Asks for a copy where that helps.
    def copied?(waiting)
      return true if copy?(*waiting)

      channel = waiting.first
      subscribe(channel)
      topic = @topics[channel]
      return false if topic.asked == @engines

      @to_engine << [:replay, channel, topic.number]
      topic.asked = @engines
      waiting[-1] += 1
      false
    end

    def copy?(channel, since, _ticket, asks)
      record = @records[channel]
      return false unless record&.is_loaded

      topic = @topics[channel]
      return true if topic.nil? || since <= topic.known || since <= record.last_id

      asks >= ASKS_MAX && topic.asked.zero?
    end

    def reply(channel, since, ticket, _asks)
      subscribe(channel)
      record = @records[channel]
      kind = kind_of(record, since)
      @to_worker << [:begin, channel, ticket, kind, record.floor]
      unless kind == :unknown
        record.messages.each { |id, text| @to_worker << [:message, channel, id, text] if id > since }
      end
      @to_worker << [:end, channel, ticket, kind]
    end

    def kind_of(record, since)
      return :unknown if since > @last_id

      since != 0 && since < record.floor ? :gap : :whole
    end
  end
end
