# frozen_string_literal: true

# When clients have to be ended because their names expire: one timer of the process for all of them.
# SPDX-License-Identifier: MIT

require "rondo"

module Rondo
  module Signed
    # Clients by the second in which their names expire. Any thread.
    # @api private
    class Expiries
      # Milliseconds between two looks at the clock: expiries are times of the day, which may be set.
      INTERVAL_MS = 1000
      # Of a WebSocket's Close: what it has is not valid (any more).
      CODE = 1008

      def initialize
        @mutex = Mutex.new
        begin_anew
      end

      # @param client [Client]
      # @param due [Time]
      # @return [Boolean] false: the server has too many timers
      def add(client, due)
        @mutex.synchronize do
          begin_anew unless @pid == Process.pid
          # A server that stopped has ended its timers; this process may have another one.
          @timer = Rondo.run_every(INTERVAL_MS) { end_due } if @timer.nil? || @timer.over?
          (@clients[due.to_i] ||= {}.compare_by_identity)[client] = true
        end
      rescue TaskLimitError
        false
      end

      # @param client [Client]
      # @param due [Time]
      # @return [void]
      def remove(client, due)
        @mutex.synchronize do
          clients = @clients[due.to_i] or next
          clients.delete(client)
          @clients.delete(due.to_i) if clients.empty?
          rest if @clients.empty?
        end
      end

      private

      # Also in a process that was forked: the clients and the timer of its parent are not ours.
      def begin_anew
        @pid = Process.pid
        @clients = {}
        @timer = nil
      end

      def rest
        @timer&.cancel
        @timer = nil
      end

      def end_due
        now = Signed.second
        due = @mutex.synchronize { @clients.select { |second, _| second < now }.flat_map { |_, clients| clients.keys } }
        due.each { |client| client.close(CODE) }
      end
    end
  end
end
