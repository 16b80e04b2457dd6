# frozen_string_literal: true

# The part of Rondo::Scheduler that needs threads, or other objects of Ruby: names, IO.select, and what the kernel
# cannot tell a loop. The rest is in the extension (ext/rondo/fibers).
# SPDX-License-Identifier: MIT

require "rondo/fibers/offload"

module Rondo
  # Fiber::Scheduler; see docs/FIBERS.md.
  class Scheduler
    # From Ruby 3.4 on TCPSocket.open looks up names and connects by itself ("Happy Eyeballs", RFC 8305), asks no
    # scheduler and holds up all fibers of the thread. Without that it asks. Called when a scheduler begins.
    # @api private
    # @return [void]
    def self.ask_for_names
      require "socket"
      Socket.tcp_fast_fallback = false if Socket.respond_to?(:tcp_fast_fallback=)
    end

    # Addrinfo and its siblings, for names; fibers that look up the same name at once wait for one lookup.
    # @param hostname [String]
    # @return [Array<String>] addresses
    def address_resolve(hostname)
      @lookups ||= {}
      lookup = @lookups[hostname] ||= Offload.begin(-> { Addrinfo.getaddrinfo(hostname, nil).map(&:ip_address).uniq })
      lookup.value
    ensure
      @lookups.delete(hostname) if @lookups[hostname].equal?(lookup)
    end

    if Fiber.respond_to?(:blocking) # then Ruby asks for it
      # IO.select.
      # @param readers [Array<IO>, nil]
      # @param writers [Array<IO>, nil]
      # @param others [Array<IO>, nil] for exceptional conditions
      # @param timeout [Numeric, nil] seconds; nil: no limit
      # @return [Array<Array<IO>>, nil] those that are ready; nil when the time is over
      def io_select(readers, writers = nil, others = nil, timeout = nil)
        return apart { IO.select(readers, writers, others, timeout) } unless others.nil? || others.empty?

        ends = timeout && (Process.clock_gettime(Process::CLOCK_MONOTONIC) + timeout)
        until (found = Fiber.blocking { IO.select(readers, writers, nil, 0) })
          left = ends && (ends - Process.clock_gettime(Process::CLOCK_MONOTONIC))
          return if left && left <= 0

          waited = wait_any(descriptors(readers), descriptors(writers), left)
          return IO.select(readers, writers, nil, left) if waited.nil?
        end
        found
      end
    end

    private

    def descriptors(sources)
      Array(sources).map { |source| IO.try_convert(source).fileno }
    end

    # Called by process_wait for what a pidfd cannot tell: groups, any child, stops.
    def wait_apart(pid, flags)
      apart { Process::Status.wait(pid, flags) }
    end

    # Called by io_wait for IO::PRIORITY alone.
    def wait_urgent(source, timeout)
      apart { IO.select(nil, nil, [source], timeout) } ? IO::PRIORITY : false
    end

    # On a thread of its own, because it may wait as long as it likes.
    def apart(&block)
      thread = Thread.new(&block)
      thread.report_on_exception = false
      thread.value
    ensure
      thread&.kill
    end
  end
end
