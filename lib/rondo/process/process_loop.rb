# frozen_string_literal: true

# The loop of the master. It handles signals, descriptors, timers and requests of other threads one after
# the other on one thread, so that the state of a cluster needs no lock. Signal handlers and {#post} only
# queue a block and wake the loop.
# SPDX-License-Identifier: MIT

module Rondo
  # Waits for events and calls their blocks.
  # @api private
  class ProcessLoop
    # A block that is called at a time; see {#cancel}.
    Timer = Struct.new(:due, :every, :block)

    # @return [Float] seconds of the monotonic clock
    def self.now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # @param log [#error] gets what a block raised
    def initialize(log)
      @log = log
      @reader, @writer = IO.pipe
      @queue = Thread::Queue.new
      @watched = {}
      @timers = []
      @before = {}
    end

    # @param names [Array<String>] signals
    # @yieldparam name [String]
    # @return [void]
    def on_signals(names, &block)
      (names & Signal.list.keys).each do |name|
        @before[name] = trap(name) { post { block.call(name) } }
      rescue ArgumentError
        next # this Ruby keeps it for itself
      end
    end

    # Restores the handlers from before.
    # @param except [Array<String>] those whose handlers stay
    # @return [void]
    def restore_signals(except: [])
      @before.except(*except).each { |name, handler| trap(name, handler || "DEFAULT") }
      @before.clear
    end

    # From any thread, also in a signal handler: the loop calls the block soon.
    # @return [void]
    def post(&block)
      @queue << block
      @writer.write_nonblock(".")
    rescue IO::WaitWritable, IOError
      nil # it wakes up anyway; or it has ended
    end

    # @param io [IO]
    # @yield whenever there is something to read
    # @return [void]
    def watch(io, &block)
      @watched[io] = block
    end

    # @return [void]
    def unwatch(io)
      @watched.delete(io)
    end

    # @param seconds [Numeric]
    # @return [Timer]
    def after(seconds, &block)
      Timer.new(ProcessLoop.now + seconds, nil, block).tap { |timer| @timers << timer }
    end

    # @param seconds [Numeric]
    # @return [Timer]
    def every(seconds, &block)
      Timer.new(ProcessLoop.now + seconds, seconds, block).tap { |timer| @timers << timer }
    end

    # @param timer [Timer, nil]
    # @return [void]
    def cancel(timer)
      @timers.delete(timer)
    end

    # Runs until the block returns true; it is asked after each turn.
    # @yieldreturn [Boolean]
    # @return [void]
    def run_until
      turn until yield
    end

    private

    def turn
      ready, = IO.select([@reader, *@watched.keys], nil, nil, patience)
      @reader.read_nonblock(4096, exception: false) if ready&.include?(@reader)
      @queue.pop.call until @queue.empty?
      Array(ready).each { |io| @watched[io]&.call }
      run_timers
    rescue StandardError => e
      @log.error "master: #{e.full_message(highlight: false)}"
    end

    def patience
      due = @timers.map(&:due).min or return
      [due - ProcessLoop.now, 0].max
    end

    def run_timers
      now = ProcessLoop.now
      due = @timers.select { |timer| timer.due <= now }
      due.sort_by.with_index { |timer, index| [timer.due, index] }.each do |timer|
        timer.every ? timer.due = now + timer.every : @timers.delete(timer)
        timer.block.call
      end
    end
  end
end
