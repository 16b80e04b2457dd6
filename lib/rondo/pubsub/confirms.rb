# frozen_string_literal: true

# Who waits for an engine to say that it has a message. Between workers and the engine in the master a note goes before
# the message: the process and the number of the one who waits (RD_RELAY_CONFIRM in ext/rondo/pubsub/relay.h). The
# answer comes back over the socket between master and worker (lib/rondo/cluster/message_socket.rb).
# SPDX-License-Identifier: MIT

module Rondo
  module PubSub
    # Those who wait in this process. Answers and deadlines come from other threads than the application's: all of these
    # may be waiting.
    # @api private
    class Confirms
      # Seconds that `confirm: true` waits.
      DEFAULT = 5
      # Seconds that anybody may wait.
      LONGEST = 3600
      # Messages of this process that wait for an answer.
      MOST = 10_000
      # Answers as words: between processes, and in {Routes}.
      WORDS = { true => "+", false => "-", unable: "?" }.freeze
      VALUES = WORDS.invert.freeze

      # A message that waits. Its result is nil until it is known.
      # @!attribute token [Integer]
      # @!attribute due [Float] seconds of the monotonic clock
      # @!attribute block [Proc, nil]
      # @!attribute changed [ConditionVariable, #signal, nil] where there is no block
      # @!attribute result [Integer, Boolean, Symbol, nil]
      Wait = Struct.new(:token, :due, :block, :changed, :result)

      # @param note [String] of {#note}
      # @return [Array(Integer, Integer)] process and token
      def self.read_note(note)
        [note.byteslice(0, 8).hex, note.byteslice(8, 8).hex]
      end

      # @param result [Integer, Boolean, Symbol]
      # @return [String]
      def self.word(result)
        WORDS[result] || result.to_s
      end

      # @param word [String]
      # @return [Integer, Boolean, Symbol]
      def self.value(word)
        VALUES.fetch(word) { word.to_i }
      end

      # @param option [Numeric, true] of `confirm:`
      # @return [Numeric] seconds
      # @raise [ArgumentError, TypeError]
      def self.seconds(option)
        return DEFAULT if option == true
        raise TypeError, "confirm must be true or seconds, not #{option.class}" unless option.is_a?(Numeric)
        raise ArgumentError, "confirm must be from 0 to #{LONGEST} s" unless option.between?(0, LONGEST)

        option
      end

      # The master keeps its process id over exec, and answers of before may still come. So tokens begin anywhere, also
      # where the application has called srand.
      # @param slow [Numeric] seconds after which a block delays no other one any more
      # @param last [Integer] the token before the first one
      def initialize(slow: Blocks::SLOW, last: Random.urandom(4).unpack1("N"))
        @mutex = Mutex.new
        @pid = Process.pid
        @last = last
        @waits = {}
        @clock = ConditionVariable.new
        @blocks = Blocks.new(@mutex, @clock, slow)
      end

      # @return [Boolean] false in a process that was forked since then
      def mine?
        @pid == Process.pid
      end

      # @param seconds [Numeric]
      # @param block [Proc, nil] gets the result, on a thread of its own
      # @param listener [#signal, nil] is told instead of one who is in {#await}
      # @return [Wait, nil] nil: too many wait
      def add(seconds, block, listener = nil)
        @mutex.synchronize do
          next if @waits.size + @blocks.size >= MOST

          wait = Wait.new(next_token, now + seconds, block, block ? nil : listener || ConditionVariable.new)
          call_by(wait.due) if block
          @waits[wait.token] = wait
        end
      end

      # @param wait [Wait]
      # @return [String] to go before the message
      def note(wait)
        format("%<pid>08x%<token>08x", pid: @pid, token: wait.token)
      end

      # The message was not accepted.
      # @param wait [Wait]
      # @return [void]
      def drop(wait)
        @mutex.synchronize { @waits.delete(wait.token) }
      end

      # @param token [Integer]
      # @param result [Integer, Boolean, Symbol]
      # @return [void]
      def resolve(token, result)
        @mutex.synchronize { finish(@waits.delete(token), result) }
      end

      # Answers of the master.
      # @param text [String] of {Routes}
      # @return [void]
      def resolve_all(text)
        text.split.each do |pair|
          token, word = pair.split(":", 2)
          resolve(token.to_i, Confirms.value(word))
        end
      end

      # @param wait [Wait] without a block
      # @return [Integer, Boolean, Symbol] false: the answer did not come in time
      def await(wait)
        @mutex.synchronize do
          while wait.result.nil? && (left = wait.due - now).positive?
            wait.changed.wait(@mutex, left)
          end
          wait.result.nil? ? false : wait.result
        ensure
          @waits.delete(wait.token) # a Timeout of the caller may end it
        end
      end

      private

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end

      # An answer that comes late must not be for somebody else.
      def next_token
        @last = (@last + 1) & 0xffff_ffff
        @last = (@last + 1) & 0xffff_ffff while @waits.key?(@last)
        @last
      end

      def finish(wait, result)
        return unless wait

        wait.result = result
        wait.changed ? wait.changed.signal : @blocks.push(wait)
      end

      # ---- the thread that keeps deadlines of blocks, and sees those that take long ----

      def call_by(due)
        if @first.nil? || due < @first
          @first = due
          @clock.signal
        end
        return if @thread&.alive?

        @thread = Thread.new { run }
        @thread.name = "rondo confirms"
      end

      def run
        loop do
          lines = @mutex.synchronize do
            expire if @first && @first <= now
            pauses = [@first && (@first - now), @blocks.look(now)].compact
            @clock.wait(@mutex, pauses.min&.clamp(0..)) if @blocks.lines.empty?
            @blocks.lines.shift(Blocks::MOST)
          end
          lines.each { |line| PubSub.log.error line }
        end
      end

      def expire
        limit = now
        late = @waits.each_value.select { |wait| wait.block && wait.due <= limit }
        late.each { |wait| finish(@waits.delete(wait.token), false) }
        @first = @waits.each_value.select(&:block).map(&:due).min
      end

      # Blocks whose results are there. One thread calls them in turn. While all threads are in blocks that take long,
      # there is another one. All but {#call} is under the mutex of {Confirms}.
      # @api private
      class Blocks
        # Seconds.
        SLOW = 1.0
        # Threads: so many blocks that do not return stop all others.
        MOST = 4
        THREAD = "rondo confirm block"
        # Seconds between two lines about one block, and how many blocks are remembered for that.
        QUIET = 60
        REMEMBERED = 100

        # @param mutex [Mutex]
        # @param clock [ConditionVariable] of the thread that calls {#look}
        # @param slow [Numeric]
        def initialize(mutex, clock, slow)
          @mutex = mutex
          @clock = clock
          @slow = slow
          @work = ConditionVariable.new
          @ready = []
          @running = {}
          @threads = @idle = 0
          @said = {}
          @lines = []
        end

        # @return [Array<String>] for the log
        attr_reader :lines

        # @return [Integer] blocks that wait to be called
        def size
          @ready.size
        end

        # @param wait [Wait]
        # @return [void]
        def push(wait)
          @ready << wait
          @work.signal
          add_thread if @threads.zero?
          watch
        end

        # Says which blocks take long, if others wait for them, and begins another thread.
        # @param now [Float]
        # @return [Float, nil] seconds until the next look; nil: none is needed
        def look(now)
          @is_watched = @ready.any? && @idle.zero?
          return unless @is_watched

          slow = @running.select { |_, (_, since)| now - since >= @slow }
          slow.each_value { |wait, _| tell(wait, now) }
          add_thread if slow.size == @threads && @threads < MOST
          slow.size == @running.size ? @slow : @running.each_value.map { |_, since| since + @slow - now }.max.to_f
        end

        private

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        # Somebody waits behind blocks that run.
        def watch
          return if @is_watched || @ready.empty? || @idle.positive?

          @is_watched = true
          @clock.signal
        end

        def add_thread
          Thread.new { run }.name = THREAD
          @threads += 1
        end

        def run
          while (wait = take)
            call(wait)
          end
        ensure
          @mutex.synchronize do
            @running.delete(Thread.current)
            @threads -= 1
          end
        end

        # @return [Wait, nil] nil: one thread that waits is enough
        def take
          @mutex.synchronize do
            @running.delete(Thread.current)
            while @ready.empty?
              return if @idle.positive?

              @idle += 1
              @work.wait(@mutex)
              @idle -= 1
            end
            wait = @ready.shift
            @running[Thread.current] = [wait, now]
            watch
            wait
          end
        end

        def call(wait)
          PubSub.log.error "! publish: #{PubSub::CANNOT_CONFIRM}" if wait.result == :unable
          wait.block.call(wait.result == :unable ? false : wait.result)
        rescue *ERRORS => e
          PubSub.log.error "! the block of a published message: #{e.full_message(highlight: false)}"
        end

        def tell(wait, now)
          place = wait.block.source_location&.join(":") || "of a method"
          return if @said[place] && now - @said[place] < QUIET

          @said.clear if @said.size >= REMEMBERED
          @said[place] = now
          @lines << "! publish: the block at #{place} takes more than #{@slow} s: those of other messages wait for it"
        end
      end

      # In the master: brings the engine's answers to the workers.
      # @api private
      class Routes
        # Answers in one message.
        SLICE = 1000
        # Seconds until a worker is tried again that did not read.
        RETRY = 0.05
        # Answers kept for such a worker. The others are not known to it in time.
        MOST = 2 * Confirms::MOST

        # @param loop [ProcessLoop]
        # @yieldparam pid [Integer]
        # @yieldreturn [MessageSocket, nil] nil: there is no such worker any more
        def initialize(loop, &socket_of)
          @loop = loop
          @socket_of = socket_of
          @mutex = Mutex.new
          @answers = Hash.new { |hash, pid| hash[pid] = [] }
        end

        # Any thread.
        # @param note [String]
        # @param result [Integer, Boolean, Symbol]
        # @return [void]
        def answer(note, result)
          pid, token = Confirms.read_note(note)
          return PubSub.confirms.resolve(token, result) if pid == Process.pid

          is_first = @mutex.synchronize do
            before = @answers.empty?
            @answers[pid] << "#{token}:#{Confirms.word(result)}" if @answers[pid].size < MOST
            before
          end
          @loop.post { send_all } if is_first
        end

        # On the thread of the loop, where it does not turn: all answers that are here. Workers may have to read first.
        # @param seconds [Numeric] at most
        # @return [void]
        def send_now(seconds)
          limit = now + seconds
          send_all
          while now < limit && @mutex.synchronize { @answers.any? }
            sleep RETRY
            send_all
          end
        end

        private

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        def send_all
          answers = @mutex.synchronize { @answers.dup.tap { @answers.clear } }
          left = answers.to_h { |pid, words| [pid, send_to(pid, words)] }.reject { |_, words| words.empty? }
          return if left.empty?

          @mutex.synchronize { left.each { |pid, words| @answers[pid].unshift(*words) } }
          @loop.after(RETRY) { send_all }
        end

        # @return [Array<String>] what the worker does not take now
        def send_to(pid, words)
          socket = @socket_of.call(pid) or return []
          while words.any? && socket.notify_now(:confirmed, answers: words.first(SLICE).join(" "))
            words.shift([SLICE, words.size].min)
          end
          socket.closed? ? [] : words
        end
      end
    end
  end
end
