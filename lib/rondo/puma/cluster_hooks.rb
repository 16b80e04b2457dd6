# frozen_string_literal: true

# What the master does for hooks of which only it knows when they are due: a mold calls them, because it has loaded the
# application. On the master's thread.
# SPDX-License-Identifier: MIT

require "rondo/cluster/mold_handle"

module Rondo
  # The part of {Generations} that is about hooks.
  # @api private
  module ClusterHooks
    # Has a hook called where the application is loaded. If that process has died, the hook waits for the next one.
    # @param mold [MoldHandle] of its generation
    # @param name [String] one of {Mold::ON_REQUEST}
    # @param fields [Hash{Symbol => #to_s}] what goes along
    # @yield when it has ended, whatever came of it
    # @return [void]
    def call_hook(mold, name, **fields, &done)
      call = MoldHandle::Call.new(name, fields, done)
      found = [mold, @current].compact.find { |each| molds.include?(each) && each.ready? }
      return found.call_hook(call) if found
      return done&.call unless (mold || @current)&.hooks&.include?(name)

      @waiting_calls << call
    end

    private

    # The code that served so far hears first that another program takes over. Its process has a deadline for that; if
    # it does not answer at all, the restart comes all the same.
    def tell_of_restart
      @telling = true
      answered = false
      told = proc do
        next if answered

        answered = true
        @telling = false
        @restart_told = true
        use_next if @when_ready && @next&.ready?
      end
      call_hook([@current, @next].find { |mold| mold&.ready? }, "before_restart", &told)
      @loop.after(@settings[:worker_shutdown_timeout], &told) unless answered
    end

    def call_what_waits(mold)
      calls, @waiting_calls = @waiting_calls, []
      calls.each { |call| mold.call_hook(call) }
    end

    # The hook that it was in is not called again: it may have done its work.
    def keep_calls(mold, words)
      begun, others = mold.calls.partition(&:begun)
      mold.calls.clear
      begun.each do |call|
        @log.error "! #{call.name} has not returned: the mold (PID: #{mold.pid}) ended with #{words}"
        call.done&.call
      end
      others.each { |call| call_hook(mold, call.name, **call.fields, &call.done) }
    end

    # The server ends, and there is no mold any more.
    def drop_calls
      say_uncalled(@waiting_calls.map(&:name))
      @waiting_calls.clear
    end

    def say_uncalled(names)
      @log.error "! #{names.uniq.join(", ")}: not called, because the mold has died" if names.any?
    end
  end
end
