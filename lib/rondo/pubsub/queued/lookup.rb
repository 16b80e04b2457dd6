# frozen_string_literal: true

# The addresses of a machine by its name. The system takes its time for that: 20 seconds and more if no server for names
# answers, in which Ruby (before 3.3) can neither interrupt nor end it. So a thread of its own asks, and whoever needs
# the addresses waits for as long as there is time. What is asked is not asked again before it is answered.
# SPDX-License-Identifier: MIT

require "socket"
require "rondo/pubsub/queued/engine"

module Rondo
  module PubSub
    module Queued
      # One question to the system.
      # @api private
      class Lookup
        # Seconds in which an answer is used that came too late for its attempt.
        OLD = 30

        @all = {}
        @mutex = Mutex.new

        class << self
          # @param host [String] a name, or an address, which costs nothing
          # @param port [Integer]
          # @param seconds [Numeric] at most
          # @return [Array<Addrinfo>]
          # @raise [SocketError] there is none, or no answer
          def addresses(host, port, seconds)
            literal(host, port) || take(host, port, seconds)
          end

          # Ends this process at once if a question has no answer: Ruby would wait for it. Nothing else is left to be
          # done. Files are flushed, as Ruby does it at the end.
          # @param error [Exception, nil] with which the process ends
          # @return [void]
          def leave(error)
            return if @all.values.all?(&:end?) # another thread may ask meanwhile

            [$stdout, $stderr, *ObjectSpace.each_object(File)].each { |io| flush(io) }
            case error
            when nil then exit!(0)
            when SystemExit then exit!(error.status)
            when SignalException
              trap(error.signo, "SYSTEM_DEFAULT")
              Process.kill(error.signo, Process.pid)
            end
          end

          private

          def literal(host, port)
            Addrinfo.getaddrinfo(host, port, nil, :STREAM, nil, Socket::AI_NUMERICHOST)
          rescue SocketError
            nil
          end

          def take(host, port, seconds)
            place = [host, port]
            lookup = @mutex.synchronize do
              @all.delete(place) unless @all[place]&.good?
              @all[place] ||= new(host, port)
            end
            answer = lookup.wait(seconds) or raise SocketError, late(host, seconds)
            @mutex.synchronize { @all.delete(place) if @all[place].equal?(lookup) }
            answer.is_a?(Exception) ? raise(answer) : answer
          end

          def late(host, seconds)
            format("no answer within %<seconds>g s to the question for the address of %<host>s",
                   seconds: seconds.round(1), host: host)
          end

          def flush(io)
            io.flush unless io.closed?
          rescue SystemCallError, IOError
            nil
          end
        end

        # @param host [String]
        # @param port [Integer]
        def initialize(host, port)
          @thread = Thread.new do
            @answer = ask(host, port)
            @answered_at = now
          end
          @thread.name = "rondo lookup"
          @thread.thread_variable_set(:fork_safe, true)
        end

        # @return [Boolean] whether it has an answer, or will have one. A fork ends it without one.
        def good?
          @thread.alive? || (!@answered_at.nil? && now - @answered_at < OLD)
        end

        # @param seconds [Numeric]
        # @return [Array<Addrinfo>, SocketError, nil]
        def wait(seconds)
          @thread.join(seconds) && @answer
        end

        # @return [Boolean] whether it has ended, or can be ended
        def end?
          !@thread.alive? || !@thread.kill.join(FAREWELL).nil?
        end

        private

        def ask(host, port)
          Addrinfo.getaddrinfo(host, port, nil, :STREAM)
        rescue SocketError, SystemCallError => e
          e
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
