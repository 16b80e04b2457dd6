# frozen_string_literal: true

# What engines with a connection share: messages wait in an outbox, and a thread (pump.rb) moves them. What is called
# here only queues and wakes the thread, which is started in the process that first needs it. Who includes it sets
# @name, @log, @mutex and @changed, and has THREAD, a class Error, `begin_pump`, and `begin_anew`, which makes @outbox
# and @outage, forgets @pid and calls `begin_replies`.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "rondo/pubsub/queued/shown"
require "rondo/pubsub/relay_frames"

module Rondo
  module PubSub
    # An engine whose messages wait for a connection.
    module Queued
      # Seconds that what is queued has at the end of the process.
      # @api private
      LAST_CHANCE = 2
      # Seconds for the thread to end by itself: it may be waiting for a connection.
      # @api private
      FAREWELL = 0.1
      # Channels of presence, which says all of it again: what waited for a server that is away would be old then, and
      # would take the room of messages. So does one that is connected and answers nothing; see {Outbox}.
      # @api private
      PASSING = "\0rondo:presence:"

      # @param bytes [String]
      # @return [Integer] CRC-16 as XMODEM has it, and so Redis Cluster and the keys of NATS
      # @api private
      def self.crc16(bytes)
        bytes.each_byte.reduce(0) do |sum, byte|
          8.times.reduce(sum ^ (byte << 8)) { |value, _| ((value << 1) ^ (value[15] * 0x1021)) & 0xffff }
        end
      end

      # @return [String] UTF-8 if the bytes are, else BINARY
      # @api private
      def self.text(bytes)
        text = bytes.dup.force_encoding(Encoding::UTF_8)
        text.valid_encoding? ? text : text.b
      end

      # @param bytes [String]
      # @param kind [String] "t" for text, "b" for binary
      # @return [String]
      # @api private
      def self.with_kind(bytes, kind)
        bytes.dup.force_encoding(kind == "t" ? Encoding::UTF_8 : Encoding::BINARY)
      end

      # Begins to connect, without waiting for it.
      # @return [void]
      def start
        queue { nil }
      end

      # @param seconds [Numeric]
      # @return [void]
      # @raise [Error] why there is no connection, in one line; at once if the server does not know who we are
      def wait_until_connected(seconds)
        @outage.await
        start
        wait_for(seconds) { @outage.here? || @outage.denied? }
        return if @outage.here?

        raise self.class::Error, "#{@name} is not available: #{@outage.reason || "no answer within #{seconds} s"}"
      ensure
        @outage.await_no_more
      end

      # Waits for the answers to all that is queued, and until their blocks have been called.
      # @param seconds [Numeric] at most
      # @return [Integer] messages and commands that have not been answered by then; 0 in a child process
      def flush(seconds)
        return 0 unless @pid == Process.pid

        limit = monotonic + seconds
        wait_for(seconds) { @outbox.empty? }
        wait_for_blocks(limit - monotonic)
        @mutex.synchronize { @outbox.count }
      end

      # Nothing can be published any more. What is lost by that is a line in the log.
      # @param seconds [Numeric] that what is queued has to leave
      # @return [void]
      def close(seconds = LAST_CHANCE)
        return unless @pid == Process.pid

        @mutex.synchronize { @closed = true }
        hurry
        lost = flush(seconds)
        @log.error "! #{@name}: #{lost} messages were not sent#{@outage.more_lost}" if lost.positive?
        end_thread
        @replies << nil
      end

      # This process becomes another program, in which an engine goes on. Nothing more is sent here, unless that
      # fails and this one is used again.
      # @yieldparam channel [String]
      # @yieldparam message [String]
      # @yieldparam number [Integer] see {#publish_again}
      # @yieldreturn [Boolean] whether it will be there
      # @return [Array(Integer, Integer)] messages that will be there; messages and commands that are lost
      # @api private
      def hand_on
        return [0, 0] unless @pid == Process.pid

        @mutex.synchronize { @closed = true }
        end_thread
        count = @outbox.count - @outbox.passing
        entries = @outbox.take_all(@pump.unanswered)
        end_replies
        text = lineage
        begin_anew
        self.lineage = text
        taken = entries.count { |entry| yield(*said(entry)) }
        [taken, count - taken]
      end

      # @return [String, nil] of {Lineage#to_s}; nil: the store knows no names
      # @api private
      def lineage
        nil
      end

      # @param text [String, nil] of the engine before it
      # @return [void]
      # @api private
      def lineage=(text); end

      # @return [Boolean] whether the server is there, as far as is known
      def connected?
        @pid == Process.pid && @outage.here?
      end

      # @return [Integer] messages and commands that have no answer yet
      def queued
        @mutex.synchronize { @outbox.count }
      end

      # @return [String] without the password
      def inspect
        "#<#{self.class} #{@name}>"
      end

      private

      # @return [false]
      def too_long
        @outage.refused(self.class::TOO_LONG)
        false
      end

      # @return [String] "t" for text, "b" for binary
      def kind_of(message)
        RelayFrames.text?(message) ? "t" : "b"
      end

      # @return [Boolean] whether a message of this channel is of no use later
      def passing?(channel)
        channel.start_with?(PASSING)
      end

      # @return [Boolean] whether such a message must not wait, because the server is away
      def away?
        return false if connected?

        start
        true
      end

      # Runs the block under the mutex and wakes the thread. A Timeout of the caller waits for that: half a
      # change would stay for ever.
      def queue(&block)
        Thread.handle_interrupt(Object => :never) { @mutex.synchronize { change(&block) } }
      end

      def change
        return refuse_late if @closed && @pid == Process.pid

        start_thread unless @pid == Process.pid
        flush_at_exit unless @flushed_at_exit == @pid
        yield.tap { @pump.wake }
      end

      # In a process that was forked the parent's connections, threads and messages are not ours.
      def start_thread
        begin_anew if @pid
        @pid = Process.pid
        @pump = begin_pump
        @thread = named_thread(self.class::THREAD) { @pump.run }
        @chance = LAST_CHANCE
      end

      # Older blocks of at_exit come after this one. What they publish has a block of its own.
      def flush_at_exit
        pid = @flushed_at_exit = @pid
        at_exit { leave if [@pid, Process.pid].all?(pid) && !@closed }
      end

      # All of these blocks share the time of one, so a thread that goes on publishing does not keep the process.
      def leave
        @flushed_at_exit = nil
        began = monotonic
        hurry
        lost = flush(@chance)
        @chance = [@chance - (monotonic - began), 0].max
        return unless lost.positive?

        @is_over = true
        close(0)
      end

      # @return [false]
      def refuse_late
        @outage.refused("the program ends: nothing more is sent") if @is_over
        false
      end

      def end_thread
        @pump.end
        @thread.join(FAREWELL) || @thread.kill.join(FAREWELL)
      end

      # A pause before the next attempt may be longer than the time that is left.
      def hurry
        @outage.hurry
        @pump.wake
      end

      def named_thread(name, &block)
        Thread.new { Thread.handle_interrupt(Object => :immediate, &block) }.tap do |thread|
          thread.name = name
          thread.thread_variable_set(:fork_safe, true)
        end
      end

      def wait_for(seconds)
        limit = monotonic + seconds
        @mutex.synchronize do
          until (found = yield)
            left = limit - monotonic
            return false unless left.positive?

            @changed.wait(@mutex, left)
          end
          found
        end
      end

      # A block of its own comes behind all others.
      def wait_for_blocks(seconds)
        return if @reader.nil? || @reader == Thread.current

        is_called = false
        block = lambda do |_|
          is_called = true
          @mutex.synchronize { @changed.broadcast }
        end
        @replies << [block, nil]
        wait_for(seconds) { is_called }
      end

      def monotonic
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end

      def drained
        @outage.drained
        @changed.broadcast
      end

      # ---- replies for the application ----

      # Those that are there are told, if the application does not take long.
      def end_replies
        @replies << nil
        @reader&.join(LAST_CHANCE) unless @reader == Thread.current
      end

      def begin_replies
        @replies = Thread::Queue.new
        @reader = nil
      end

      def resolve(entry, reply)
        @replies << [entry.block, reply] if entry.block
      end

      # What the application does with a reply may take its time.
      def start_replies
        return if @reader

        replies = @replies
        @reader = named_thread("#{self.class::THREAD} replies") do
          while (block, reply = replies.pop)
            hand_over(block, reply)
          end
        end
      end

      def hand_over(block, reply)
        block.call(reply)
      rescue StandardError => e
        @log.error "! #{@name}: the block of a command: #{e.full_message(highlight: false)}"
      end
    end
  end
end
