# frozen_string_literal: true

# The thread of the blocks of a program in the master (root.rb): tasks, timers, and messages of the hub. Each
# subscription has a link of its own to the hub, as a worker has one for all of its own (ext/rondo/pubsub/relay.h), so
# the hub matches patterns.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/relay_frames"

module Rondo
  module Root
    # Calls blocks one after the other.
    # @api private
    class Runner
      # Seconds in which a block must return at the end.
      FAREWELL = 1
      READ_BYTES = 65_536
      # @!attribute socket [IO] its other end is the hub's
      # @!attribute number [Integer] of that link
      Link = Struct.new(:subscription, :number, :socket, :frames)

      # @param hub [Hub]
      # @param log [Logger]
      # @param limit [Integer] of jobs
      # @param after [#call, nil] called when a block has returned
      def initialize(hub, log, limit, after = nil)
        @hub = hub
        @log = log
        @limit = limit
        @after = after
        @busy = false
        @calling = Mutex.new # no block begins while it is locked
        @jobs = []
        @links = {}
        @lock = Mutex.new
        @waker, @wake = IO.pipe
        @ended = false
      end

      # @return [void]
      def start
        @thread = Thread.new { run }
        @thread.name = "rondo root"
      end

      # @param job [Job]
      # @return [void]
      # @raise [TaskLimitError]
      def add(job)
        @lock.synchronize do
          @jobs.reject!(&:over?) if @jobs.size >= @limit
          raise TaskLimitError, "too many tasks wait and timers are set: max_tasks is #{@limit}" if @jobs.size >= @limit

          job.begin(now)
          @jobs << job
        end
        wake
      end

      # A block that takes the place of another one takes over its link: no message is missed in between.
      # @param subscription [Subscription]
      # @return [void]
      def subscribe(subscription)
        return if replace(subscription)

        number, socket = @hub.link_root
        socket.write(PubSub::RelayFrames.subscribe(subscription.channel, subscription.pattern))
        link = Link.new(subscription, number, socket, PubSub::RelayFrames.new)
        @lock.synchronize { @links[subscription.key] = link }
        wake
      rescue SystemCallError => e
        raise Error, "cannot subscribe to #{subscription.channel}: #{e.message}"
      end

      # @yield unless a block is being called, and none is until this returns: it must not wait
      # @return [Object, nil] of the block
      def unless_busy
        @calling.synchronize { yield unless @busy }
      end

      # @param key [Array] of {Subscription#key}
      # @return [void]
      def unsubscribe(key)
        link = @lock.synchronize { @links.delete(key) } or return
        @hub.unlink(link.number)
        link.socket.close
      end

      # What has not begun is not called any more.
      # @return [void]
      def close
        @ended = true
        wake
        return if @thread.nil? || @thread.join(FAREWELL)

        @log.error "! A block of Rondo::Root did not end in time"
        @thread.kill
      ensure
        @links.each_key { |key| unsubscribe(key) }
      end

      private

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end

      # @return [Boolean] whether there was one
      def replace(subscription)
        @lock.synchronize do
          link = @links[subscription.key]
          link.subscription = subscription if link
          !link.nil?
        end
      end

      def wake
        @wake.write_nonblock(".", exception: false)
      end

      # A block may end its thread, which is not its own.
      def run
        turn until @ended
      ensure
        go_on unless @ended
      end

      def go_on
        @log.error "! Rondo::Root: a block has ended the thread of all blocks; another thread goes on"
        start
      end

      def turn
        links, due = @lock.synchronize { [@links.values, @jobs.map(&:due).min] }
        ready, = IO.select([@waker, *links.map(&:socket)], nil, nil, due && [due - now, 0].max)
        @waker.read_nonblock(4096, exception: false) if ready&.include?(@waker)
        links.each { |link| read(link) if ready&.include?(link.socket) }
        call_due
      rescue IOError, Errno::EBADF
        nil # another thread has unsubscribed
      end

      def call_due
        due = @lock.synchronize { @jobs.select { |job| job.due <= now }.sort_by(&:due) }
        due.each { |job| call(job) unless @ended }
      end

      # The next call of a timer is due an interval after this one.
      def call(job)
        job.begin(now)
        call_block { job.call } unless job.over?
        @lock.synchronize { @jobs.delete(job) } if job.over?
      end

      def read(link)
        bytes = link.socket.read_nonblock(READ_BYTES, exception: false)
        return if bytes == :wait_readable
        return lose(link) if bytes.nil?

        link.frames.feed(bytes) { |frame| deliver(link, frame) if frame.type == :publish && !@ended }
      rescue PubSub::RelayFrames::Invalid, SystemCallError => e
        lose(link, e.message)
      end

      def deliver(link, frame)
        return unless @links[link.subscription.key].equal?(link)

        call_block { link.subscription.block.call(frame.channel, frame.message) }
      end

      def lose(link, reason = "the hub closed it")
        @log.error "! Rondo::Root gets no messages of #{Logger.quote(link.subscription.channel)} any more: #{reason}"
        unsubscribe(link.subscription.key)
      end

      # The master must not end with a block that does.
      def call_block
        @calling.synchronize { @busy = true }
        yield
      rescue Exception => e # rubocop:disable Lint/RescueException -- this calls the application
        @log.error "! Rondo::Root: #{e.full_message(highlight: false)}"
      ensure
        @busy = false
        @after&.call
      end
    end
  end
end
