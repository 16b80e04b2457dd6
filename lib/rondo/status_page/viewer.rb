# frozen_string_literal: true

# Somebody who looks at the status page through the application. A thread reads the events of the control server and
# passes them on; most of the time it sleeps.
# SPDX-License-Identifier: MIT

require "rondo/command/control_client"

module Rondo
  class StatusPage
    # The handler of an event stream (`rack.upgrade`).
    # @api private
    class Viewer
      # Longest event, in bytes: the first one has five minutes of samples and 512 lines.
      EVENT_MOST = 8 << 20
      # Seconds without a word of the control server, which says something each second.
      SILENCE = 15

      @count = 0
      @lock = Mutex.new

      # @return [Integer] how many look in this process
      def self.count
        @lock.synchronize { @count }
      end

      # @param most [Integer]
      # @return [Boolean] whether there was a place for one more
      def self.enter?(most)
        @lock.synchronize { @count < most && (@count += 1) && true }
      end

      # @return [void]
      def self.leave
        @lock.synchronize { @count -= 1 }
      end

      # @param url [String] of the control server
      # @param token [String, nil]
      # @param most [Integer] how many may look
      def initialize(url, token, most)
        @server = ControlClient.new(url, token)
        @most = most
      end

      # Others may have taken the last place since the request was answered.
      def on_open(client)
        return client.close unless Viewer.enter?(@most)

        @thread = Thread.new { pass_on(client) }
        @thread.name = "rondo status page"
        @thread.report_on_exception = false
      end

      def on_close(_client)
        return unless @thread

        Viewer.leave
        @thread.kill
      end

      private

      # The page comes back a second after the end.
      def pass_on(client)
        @server.stream("/events", EVENT_MOST, SILENCE) do |event|
          name, data = event.match(/\Aevent: (\S+)\ndata: (.*)\z/n)&.captures
          client.event(data.force_encoding(Encoding::UTF_8), event: name, retry: 1000) if name
        end
      rescue Error, SystemCallError, IOError
        nil # the control server is away
      ensure
        client.close
      end
    end
  end
end
