# frozen_string_literal: true

# What every client is promised, compared with what Redis wrote in a history.
#
# - Each message of a channel once, in the order of ids. A machine gives them in the order of ids over all channels.
# - None is missing between two of them, unless a reset was told there.
# - At the end everybody has the last message.
# - A reset only where Redis has lost something, a limit was reached, or a replay had no answer in time.
# - What a publisher queued is written once, in its order, unless Redis refused it for good.
# SPDX-License-Identifier: MIT

module Simulate
  class BrokenPromise < StandardError; end

  class Promises
    def initialize(history)
      @history = history
      @redis = history.redis
      @faults = history.events
      # Redis went back: what it had forgotten, somebody else may have seen, and nobody can know that it is missing.
      # The same if it lost all, and its clock is behind what it gave before: its ids may be lower then.
      @gives_lower = @faults[:flush].positive? && @faults[:clock].positive?
      @went_back = @faults[:older] > 1 || @gives_lower
    end

    def check
      check_written
      broken(@history.disorder.first) if @history.disorder.any? && !@went_back
      @history.clients.each do |client|
        client.seen.each { |channel, seen| check_seen(client, channel, seen) }
      end
    end

    private

    def broken(message)
      raise BrokenPromise, message
    end

    def check_written
      texts = @redis.ever.transform_values { |rows| rows.map(&:text) }
      @history.sent.each do |(machine, channel), sent|
        written = texts[channel] & sent
        sent -= @redis.refused - written
        broken("#{machine.name} published #{sent}, and Redis has #{written} of #{channel}") unless written?(machine, sent, written)
        doubled = texts[channel].tally.select { |text, count| count > 1 && sent.include?(text) }.keys
        broken("written twice: #{doubled}") if doubled.any? && !@went_back && @faults[:flush].zero?
      end
    end

    # A machine that ended did not write all; what it had sent may come after what the next engine sends.
    def written?(machine, sent, written)
      return true if @went_back || @faults[:engine].positive?

      written == (@history.machines.include?(machine) ? sent : (sent & written))
    end

    # ---- a client on a channel ----

    def check_seen(client, channel, seen)
      @rows = @redis.ever[channel]
      @where = "#{client.name} on #{channel}"
      @channel = channel
      @at = nil # up to here it has everything, or was told
      @is_told = false
      @untold = [] # what a replay left out
      @passed = [] # what is not after the id that it came with
      seen.events.each { |event| check_event(seen, *event) }
      broken_gap(@passed + @untold)
      check_end(seen)
    end

    def check_event(seen, type, id, text, start = nil)
      case type
      when :came then come(id, start)
      when :late # it begins anew, and this machine may be behind
        @at = nil
        @untold = @passed = []
      when :reset
        check_reset(id, seen)
        note_reset(id, text)
      when :replayed
        broken_gap(@passed)
        check_message(@at, id, text)
      when :message
        broken_gap(@passed + @untold)
        @since = nil
        check_message(@at && start ? [@at, start].max : nil, id, text)
        broken_gap(@untold)
      end
    end

    # `start`: from where on the connection before was owed everything.
    def come(since, start)
      since ? broken_gap(@untold) : @untold = @passed = []
      @passed += passed_over(since, [@at, start].max) if since && @at && start && !@is_told
      @told_upto = 0
      @since = since # of a replay that is not over
      @at = since if since.nil? || @at.nil? || since > @at
    end

    # `floor`: that of an answer is told before its messages, and up to there.
    def note_reset(id, floor)
      @is_told = true
      @untold = @passed = []
      @since = nil
      @told_upto = floor if id.zero?
      @at = id if @at && id > @at
    end

    # The client comes with the id of another channel: what this one has before it does not come any more.
    def passed_over(since, from)
      @rows.select { |row| row.id > from && row.id <= since }
    end

    # `from`: what comes after is owed.
    def check_message(from, id, text)
      row = @rows.find { |each| each.id == id && each.text == text }
      broken("#{@where}: #{text} was never written with its id") unless row
      broken("#{@where}: #{text} comes after a later one") if @at && id <= @at && !@went_back
      @untold += @rows.select { |each| each.id > [from, @told_upto].max && each.id < id } unless from.nil? || @is_told
      @at = id
      @is_told = false
    end

    def broken_gap(rows)
      broken("#{@where}: #{rows.map(&:text)} is missing, and nobody said so") if rows.any? && !@went_back
    end

    # One that was told before may be told again by the next engine.
    def check_reset(id, seen)
      return if @at.nil? || @untold.any? || (@is_told && id == @at) || excuse?(@since || @at, seen)

      broken("#{@where}: a reset, but nothing is gone")
    end

    def excuse?(at, seen)
      return true if @went_back || @faults[:flush].positive? || seen.is_late || @redis.doubts.positive?
      return true if @redis.erased[@channel].any? { |id| id > at }

      @history.limited?
    end

    def check_end(seen)
      last = @rows.last
      return if last.nil? || @gives_lower

      broken("#{@where}: #{last.text} did not come") if !@is_told && (@at.nil? || @at < last.id)
      # A hub without a copy knows only what the last engine gave to any channel.
      return if seen.owed.nil? || seen.since || (@faults[:engine].positive? && @faults[:flush].positive?)

      owed = @rows.find { |row| row.text == seen.owed } or return
      first = seen.events.reverse.take_while { |type,| type != :came }.reverse.find { |type,| %i[message replayed].include?(type) }
      is_reset = seen.events.any? { |type,| type == :reset }
      broken("#{@where}: #{seen.owed} was published after it had subscribed") if first && first[1] > owed.id && !is_reset && !@went_back
    end
  end
end
