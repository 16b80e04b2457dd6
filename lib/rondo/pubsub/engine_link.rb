# frozen_string_literal: true

# Puts an engine behind the hub of a cluster: in the master, on a thread of its own, it tells the engine
# what the hub says, and gives the hub what the engine has from outside (as PROCESS.publish). Any object
# with the interface of Engine will do.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/notices"
require "rondo/pubsub/relay_frames"

module Rondo
  module PubSub
    # A thread between a socket and an engine.
    # @api private
    class EngineLink
      # Bytes kept for a hub that does not read.
      QUEUE_MAX = 64 << 20
      READ_BYTES = 65_536
      # Seconds in which an engine must return from its last notice.
      FAREWELL = 1

      # @param engine [#subscribe, #unsubscribe, #publish]
      # @param socket [IO] its other end is the hub's
      # @param log [Logger]
      def initialize(engine, socket, log)
        @engine = engine
        @socket = socket
        @log = log
        @frames = RelayFrames.new
        @notices = Notices.new(engine) { log }
        @mutex = Mutex.new
        @out = String.new(encoding: Encoding::BINARY)
        @waker, @wake = IO.pipe
      end

      # Takes what the engine hands on, and begins.
      # @param answers [Confirms::Routes, nil] to those who wait for the engine
      # @return [self]
      def start(answers = nil)
        @answers = answers
        PubSub.outlet = self
        @thread = Thread.new { run }
        @thread.name = "rondo engine"
        self
      end

      # From the engine, on any thread: for all workers.
      # @return [Boolean] false when the hub does not read, is gone, or the message is above its limits
      def publish_here(channel, message)
        frame = RelayFrames.publish(channel, message) or return false
        queue(frame)
      end

      # The hub will close its end when it has sent everything; until then the engine is notified.
      # @return [void]
      def expect_end
        @ending = true
      end

      # Waits for that.
      # @param patience [Numeric] seconds
      # @return [void]
      def finish(patience)
        expect_end
        return if @thread.nil? || @thread.join(patience)

        close
        @log.error "! #{@engine.class} did not take all messages in time: those in the hub are lost" unless @is_stuck
      end

      # @return [void]
      def close
        @mutex.synchronize { @ended = true }
        @wake.write_nonblock(".", exception: false)
        end_thread
      rescue IOError
        nil # it has ended by itself
      end

      private

      def queue(frame)
        @mutex.synchronize do
          return false if @ended || @out.bytesize + frame.bytesize > QUEUE_MAX

          @out << frame
        end
        @wake.write_nonblock(".", exception: false)
        true
      rescue IOError
        false # it has ended meanwhile
      end

      # An engine that is stuck does not keep the process from ending.
      def end_thread
        return if @thread.nil? || @thread.join(FAREWELL)

        @is_stuck = true
        @log.error "! #{@engine.class} did not finish in time: the messages that it still had are lost"
        @thread.kill
      end

      def run
        turn until @ended
      rescue SystemCallError, IOError, RelayFrames::Invalid => e
        is_end = @ended || (@ending && (e.is_a?(Errno::EPIPE) || e.is_a?(Errno::ECONNRESET)))
        @log.error "! the pub/sub engine lost its connection to the hub: #{e.message}" unless is_end
      ensure
        @mutex.synchronize { @ended = true }
        PubSub.outlet = nil if PubSub.outlet.equal?(self)
        # In this order: a thread that wakes it meanwhile finds its end closed, not a pipe without a reader.
        [@socket, @wake, @waker].each(&:close)
      end

      def turn
        waiting = @mutex.synchronize { !@out.empty? }
        ready, = IO.select([@socket, @waker], waiting ? [@socket] : nil, nil, @notices.pause)
        @waker.read_nonblock(4096, exception: false) if ready&.include?(@waker)
        send_some
        read_some if ready&.include?(@socket)
        @notices.notify_due
      end

      def send_some
        @mutex.synchronize do
          count = @out.empty? ? 0 : @socket.write_nonblock(@out, exception: false)
          @out = @out.byteslice(count..) if count.is_a?(Integer)
        end
      end

      def read_some
        bytes = @socket.read_nonblock(READ_BYTES, exception: false)
        if bytes.nil?
          return @ended = true if @ending

          raise EOFError, "the hub closed it"
        end
        @frames.feed(bytes) { |frame| dispatch(frame) } unless bytes.is_a?(Symbol)
      end

      # In the order of the stream: who subscribes and publishes then gets its own message.
      def dispatch(frame)
        return publish(frame) if frame.type == :publish

        @notices.want(frame.channel, frame.pattern, frame.type == :subscribe)
        @notices.notify_due
      end

      # An error of an engine ends nothing else.
      def publish(frame)
        number = RelayFrames.number_of(frame.note)
        return hand_again(frame, number) if number

        frame.note ? publish_for_answer(frame) : hand(frame)
      rescue StandardError, ScriptError => e # NotImplementedError is one
        @log.error "! #{@engine.class}#publish: #{e.full_message(highlight: false)}"
        @answers&.answer(frame.note, false) if frame.note
      end

      # The engine before a restart had it.
      def hand_again(frame, _number)
        hand(frame)
      end

      def hand(frame, &)
        @engine.publish(frame.channel, frame.message, &)
      end

      # An engine that cannot answer does not get the message: who publishes gets an error.
      def publish_for_answer(frame)
        return @answers&.answer(frame.note, :unable) unless @engine.respond_to?(:confirms?) && @engine.confirms?

        hand(frame) { |result| @answers&.answer(frame.note, result) } or @answers&.answer(frame.note, false)
      end
    end
  end
end
