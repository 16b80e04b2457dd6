# frozen_string_literal: true

# The other end of {Publisher}: a process that serves takes broadcasts of consoles and jobs.
# SPDX-License-Identifier: MIT

require "fileutils"
require "socket"
require "rondo/rails/cable/publisher"
require "rondo/rails/cable/throttled_log"

module Rondo
  module Rails
    module Cable
      # Listens on a socket of the folder, on a thread that only accepts. What comes then is the server's.
      class Listener
        # Seconds until it looks again, when this process or the system has no descriptor left.
        PAUSE = 0.1
        EXHAUSTED = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM, Errno::ECONNABORTED].freeze
        private_constant :PAUSE, :EXHAUSTED
        # Processes that may be connected at once.
        CONNECTIONS = 1000
        # Frames of all of them that are not complete: room for the longest one.
        PENDING_BYTES = Publisher::FRAME_BYTES + (64 << 10)

        # @param folder [SocketFolder]
        # @param log [#error]
        # @param connections [Integer]
        # @param pending_bytes [Integer]
        # @param patience [Numeric] seconds of silence in the middle of a frame: its publisher has given up
        # @yieldparam broadcasting [String]
        # @yieldparam message [String]
        # @yieldreturn [Boolean] whether it is on its way
        def initialize(folder, log, connections: CONNECTIONS, pending_bytes: PENDING_BYTES, patience: Publisher::PATIENCE,
                       &publish)
          @folder = folder
          @log = ThrottledLog.new(log)
          @connections = Budget.new(connections)
          @pending = Budget.new(pending_bytes)
          @patience = patience
          @publish = publish
        end

        # Takes connections as long as this process serves. Sockets of processes that have ended are removed.
        # @return [void]
        def start
          FileUtils.mkdir_p(@folder.path, mode: 0o700)
          raise ConfigurationError, @folder.complaint unless @folder.private? # somebody else's server

          ended = stale
          path = @folder.new_socket
          server = @folder.reach(path) { |address| UNIXServer.new(address) }.tap { File.chmod(0o600, path) }
          ended.each { |old| @folder.remove(old) } # not before: where there is no socket is no server
          thread = Thread.new { accept(server, path) }
          thread.name = "rondo cable"
          thread.report_on_exception = false
        rescue SystemCallError, Error => e
          @log.error { "! Action Cable: other processes cannot broadcast: #{e.message}" }
        end

        # This process may have had one before it became another program.
        # @return [Array<String>] sockets of processes that have ended
        def stale
          @folder.sockets.select do |path|
            (File.basename(path).to_i == Process.pid || @folder.ended?(path)) && refuses?(path)
          end
        end

        # @param socket [UNIXSocket] of a process that broadcasts
        # @return [void]
        def take(socket)
          return refuse("#{@connections.limit} may be connected at once") unless @connections.take(1)

          begin
            Rondo.attach_fd(socket, PublisherConnection.new(@connections, @pending, @patience, @publish))
          rescue Error, ArgumentError, IOError, SystemCallError => e
            @connections.give(1)
            refuse(e.message)
          end
        ensure
          socket.close
        end

        private

        # A server that ends refuses many, which take another process then.
        def refuse(reason)
          @log.error { |times| "! Action Cable: a process that broadcasts was refused#{times}: #{reason}" }
        end

        def refuses?(path)
          socket = ::Socket.new(:UNIX, :STREAM)
          @folder.reach(path) { |address| socket.connect_nonblock(::Socket.sockaddr_un(address)) }
          false
        rescue SystemCallError => e
          e.is_a?(Errno::ECONNREFUSED)
        ensure
          socket&.close
        end

        def accept(server, path)
          loop do
            take(server.accept)
          rescue *EXHAUSTED
            sleep PAUSE
          end
        rescue IOError, SystemCallError => e
          @log.error { "! Action Cable: no more broadcasts of other processes: #{e.message}" } if PubSub.serving?
        ensure
          @folder.remove(path)
        end
      end

      # What all connections together may have.
      class Budget
        # @return [Integer]
        attr_reader :limit

        # @param limit [Integer]
        def initialize(limit)
          @limit = limit
          @taken = 0
          @mutex = Mutex.new
        end

        # @param count [Integer]
        # @return [Boolean] false: there is not so much, and nothing was taken
        def take(count)
          @mutex.synchronize { @taken + count <= @limit && (@taken += count) && true }
        end

        # @param count [Integer]
        # @return [void]
        def give(count)
          @mutex.synchronize { @taken -= count }
        end
      end

      # A connection of one process that publishes; the handler of a raw connection (docs/RAW.md).
      class PublisherConnection
        HEAD_BYTES = 6

        # @param connections [Budget] it is one of them
        # @param pending [Budget] bytes of frames that are not complete
        # @param patience [Numeric] seconds
        # @param publish [#call]
        def initialize(connections, pending, patience, publish)
          @connections = connections
          @pending = pending
          @patience = patience
          @publish = publish
          @bytes = String.new(encoding: Encoding::BINARY)
        end

        # @param client [Client]
        # @param data [String]
        # @return [void]
        def on_message(client, data)
          return if @is_closed
          return close(client, "0") unless @pending.take(data.bytesize)

          @bytes << data
          take_frames(client)
          client.timeout = @bytes.empty? ? 0 : @patience
        end

        # The rest of a frame does not come.
        # @param client [Client]
        # @return [void]
        def ping(client)
          close(client)
        end

        # @return [void]
        def on_close(_client)
          @connections.give(1)
          @pending.give(@bytes.bytesize)
          @bytes.clear
        end

        private

        def close(client, answer = "")
          @is_closed = true # what comes now is the rest of a frame that was not kept
          client.write(answer) unless answer.empty?
          client.close
        end

        def take_frames(client)
          while @bytes.bytesize >= HEAD_BYTES
            length, name_length = @bytes.unpack("Nn")
            return close(client) if length > Publisher::FRAME_BYTES || length < name_length + 2
            return if @bytes.bytesize < length + 4

            client.write(answer_to(@bytes.byteslice(HEAD_BYTES...(4 + length)), name_length))
            @bytes = @bytes.byteslice((4 + length)..)
            @pending.give(4 + length)
          end
        end

        def answer_to(frame, name_length)
          name = frame.byteslice(0, name_length).force_encoding(Encoding::UTF_8)
          @publish.call(name, frame.byteslice(name_length..)) ? "1" : "0"
        rescue ArgumentError
          "-"
        end
      end
    end
  end
end
