# frozen_string_literal: true

# How broadcasts of processes that do not serve (consoles, jobs) get to the server on the same machine: by a socket of
# {SocketFolder}, whose other end is {Listener}.
#
#   frame:  length of the rest (4 bytes), length of the broadcasting (2 bytes), broadcasting, message
#   answer: "1" sent, "0" no room, "-" not a message of this server
# SPDX-License-Identifier: MIT

require "socket"
require "rondo/rails/cable/socket_folder"

module Rondo
  module Rails
    module Cable
      # A broadcast of another process could not be given to the server.
      # @api public
      class Undelivered < Error; end

      # No process of a server listens, so there are no clients either.
      # @api public
      class NoServer < Undelivered; end

      # One connection to the server for all threads of this process.
      class Publisher
        # Seconds that whoever publishes waits for an answer.
        PATIENCE = 5
        # Seconds until it looks again, when the queues of all processes are full, or a server restarts.
        PAUSE = 0.01
        private_constant :PAUSE
        FRAME_BYTES = 64 << 20
        # For one message: the sockets that were tried since the last pause, and whether there is a server to wait for.
        Search = Struct.new(:tried, :expects)
        private_constant :Search

        # @param folder [SocketFolder]
        def initialize(folder)
          @folder = folder
          @mutex = Mutex.new
          @released = ConditionVariable.new
          @user = nil # pid of the process in which a thread uses the connection: a fork has not that thread
        end

        # @param broadcasting [String]
        # @param message [String]
        # @param patience [Numeric] seconds, in which other threads may use the connection first
        # @return [void]
        # @raise [NoServer] one line
        # @raise [Undelivered] one line
        # @raise [ArgumentError] it is longer than max_publish_bytes
        def publish(broadcasting, message, patience: PATIENCE)
          limit = now + patience
          frame = [2 + broadcasting.bytesize + message.bytesize, broadcasting.bytesize].pack("Nn")
          frame << broadcasting.b << message.b
          raise ArgumentError, "the message has #{message.bytesize} bytes" if frame.bytesize > FRAME_BYTES

          answer = alone(limit) { deliver(frame, limit) }
          raise ArgumentError, "the server does not take #{message.bytesize} bytes for #{broadcasting}" if answer == "-"
          raise Undelivered, "the server has no room for a message to #{broadcasting}" if answer == "0"
        end

        private

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        # One thread after the other, each within its own time.
        def alone(limit)
          is_mine = false
          @mutex.synchronize do
            while @user == Process.pid
              left = limit - now
              raise Undelivered, overdue unless left.positive?

              @released.wait(@mutex, left)
            end
            @user = Process.pid
            is_mine = true
          end
          yield
        ensure
          release if is_mine
        end

        def release
          @mutex.synchronize do
            @user = nil
            @released.signal
          end
        end

        def overdue
          "the server did not answer in time: the message may not have been sent"
        end

        # A connection may have been closed since the last message, by a server that has ended. It answers what it has
        # taken, so what has no answer is sent again.
        def deliver(frame, limit)
          disconnect if @pid != Process.pid # a fork has the connection of its parent
          search = Search.new([], false)
          loop do
            @socket ||= connect(search, limit)
            answer = ask(frame, limit)
            return answer if answer
          end
        end

        def disconnect
          @socket&.close
          @socket = nil
        end

        # When it is interrupted (Timeout), half of a frame may be there, or an answer may come that nobody waits for.
        # The connection is of no use then.
        # @return [String, nil] nil: it has ended
        def ask(frame, limit)
          rest = frame
          until rest.empty?
            count = @socket.write_nonblock(rest, exception: false)
            count == :wait_writable ? wait(:wait_writable, limit) : rest = rest.byteslice(count..)
          end
          answer = :wait_readable
          while answer == :wait_readable
            wait(:wait_readable, limit)
            answer = @socket.read_nonblock(1, exception: false)
          end
          answer
        rescue SystemCallError, IOError
          nil
        ensure
          disconnect unless answer.is_a?(String)
        end

        def wait(what, limit)
          left = limit - now
          raise Undelivered, overdue unless left.positive? && @socket.public_send(what, left)
        end

        # A console of root trusts the server of another user.
        def check_folder
          raise Undelivered, @folder.complaint unless @folder.private?(owned: !Process.euid.zero?)
        rescue Errno::ENOENT
          nil # no server has been there
        end

        # A server that ends listens until it has ended, and takes nothing any more. So each is asked once, and again
        # after a pause: its queue may have been full, or it restarts. Until then a server that is to become another
        # program (USR2) refuses, or its socket is there and nobody listens.
        def connect(search, limit)
          check_folder
          loop do
            socket = search_socket(search)
            return socket if socket
            raise NoServer, "no server listens in #{@folder.path}" unless search.expects
            raise Undelivered, overdue if now > limit

            search.tried.clear
            sleep PAUSE
          end
        end

        # @return [Socket, nil]
        def search_socket(search)
          (@folder.sockets - search.tried).shuffle.each do |path|
            search.tried << path
            return open_socket(path).tap { search.expects = true }
          rescue Errno::EAGAIN
            search.expects = true
          rescue Errno::ECONNREFUSED
            @folder.ended?(path) ? @folder.remove(path) : search.expects = true
          rescue SystemCallError
            next # nobody who could be waited for
          end
          nil
        end

        # UNIXSocket.new takes a queue that is full for a connection.
        def open_socket(path)
          socket = ::Socket.new(:UNIX, :STREAM)
          @folder.reach(path) { |address| socket.connect_nonblock(::Socket.sockaddr_un(address)) }
          @pid = Process.pid
          is_open = true
          socket
        ensure
          socket.close if socket && !is_open
        end
      end
    end
  end
end
