# frozen_string_literal: true

# Action Cable: what connections, broadcasts and heartbeats cost a server. Clients are plain sockets of this process,
# which counts the messages that arrive.
# SPDX-License-Identifier: MIT

require "json"
require_relative "rails_servers"

module Bench
  # Clients of one channel.
  class CableClients
    HANDSHAKE = "GET /cable HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" \
                "Sec-WebSocket-Protocol: actioncable-v1-json\r\n\r\n"
    IDENTIFIER = JSON.generate({ channel: "CrowdChannel" })
    # Seconds without a byte.
    PATIENCE = 60
    MASK = "\0\0\0\0"

    def initialize(port, count)
      @sockets = Array.new(count) { enter(port) }
    end

    # @param times [Integer] broadcasts
    # @param bytes [Integer] of each
    # @return [Integer] deliveries
    def shout(times, bytes)
      data = JSON.generate({ action: "shout", times: times, bytes: bytes })
      say(@sockets.first, { command: "message", identifier: IDENTIFIER, data: data })
      wanted = "x" * bytes
      @sockets.sum { |socket| count(socket, wanted, times) }
    end

    # @return [void]
    def close
      @sockets.each(&:close)
    end

    private

    def enter(port)
      socket = TCPSocket.new("127.0.0.1", port)
      socket.write(HANDSHAKE)
      read_until(socket, "welcome")
      say(socket, { command: "subscribe", identifier: IDENTIFIER })
      read_until(socket, "confirm_subscription")
      socket
    end

    def say(socket, command)
      text = JSON.generate(command)
      length = text.bytesize < 126 ? [0x80 | text.bytesize].pack("C") : [0x80 | 126, text.bytesize].pack("Cn")
      socket.write("\x81".b, length, MASK, text)
    end

    def read(socket)
      raise "no message for #{PATIENCE} s" unless socket.wait_readable(PATIENCE)

      socket.readpartial(1 << 20)
    end

    def read_until(socket, word)
      seen = +""
      seen << read(socket) until seen.include?(word)
    end

    # Messages may come in parts, and heartbeats between them.
    def count(socket, wanted, times)
      found = 0
      rest = +""
      while found < times
        rest << read(socket)
        found += rest.scan(wanted).size
        last = rest.rindex(wanted)
        rest = rest.byteslice((last + wanted.bytesize)..) if last
      end
      found
    end
  end

  # The table.
  class RailsCable
    BYTES = 230
    DELIVERIES = 150_000
    IDLE_SECONDS = 9
    COLUMNS = { broadcast: "CPU µs for a delivery", connect: "CPU ms to connect and subscribe",
                idle: "KB for an idle client", threads: "threads", heartbeats: "CPU ms a second, idle" }.freeze
    GOALS = { broadcast: [2.5, 1.2], idle: [14, 8], threads: [3, 1] }.freeze

    # @param options [Hash] clients [Array<Integer>], servers [Array<String>], deliveries [Integer], seconds [Numeric]
    def initialize(options)
      @options = options
    end

    # @return [String] Markdown
    def call
      names, missing = @options[:servers].partition { |name| RailsServer.version(name) }
      rows = names.product(@options[:clients]).map { |name, clients| row(name, clients) }
      head = ["Action Cable", "clients", *COLUMNS.values]
      table = [head, head.map { "---" }, *rows].map { |cells| "| #{cells.join(" | ")} |" }.join("\n")
      missing = ["Not installed: #{missing.join(", ")}."] if missing.any?
      about = "Rails #{rails}; one process, #{RailsServer::THREADS} threads; broadcasts of #{BYTES} bytes; threads " \
              "beyond those before the first client. Must, stretch: #{goals}."
      ["## Action Cable", [about, *missing].join(" "), table].join("\n\n")
    end

    private

    def rails
      Gem::Specification.select { |gem| gem.name == "actioncable" }.map(&:version).max
    end

    def goals
      GOALS.map { |name, limits| "#{COLUMNS[name]} #{limits.join(", ")}" }.join("; ")
    end

    def row(name, clients)
      found = RailsServer.run(name) { |server| measure(server, clients) }
      ["#{RailsServer::NAMES.fetch(name)} #{RailsServer.version(name)}", clients, *found.values_at(*COLUMNS.keys)]
    rescue StandardError => e
      ["#{RailsServer::NAMES.fetch(name)} #{RailsServer.version(name)}", clients, "failed: #{e.message}", *[""] * 4]
    end

    # The first clients warm the server up.
    def measure(server, clients)
      threads = server.threads
      CableClients.new(server.port, 20).tap { |few| few.shout(20, BYTES) }.close
      found, crowd = gather(server, clients)
      seconds = @options[:seconds]
      found[:heartbeats] = (used(server) { sleep seconds } / seconds / 1000).round(1)
      found[:broadcast] = broadcast(server, crowd, clients).round(2)
      found.merge(threads: server.threads - threads)
    ensure
      crowd&.close
    end

    def gather(server, clients)
      memory = server.anonymous_bytes
      crowd = nil
      cpu = used(server) { crowd = CableClients.new(server.port, clients) }
      grown = server.anonymous_bytes - memory
      [{ connect: (cpu / clients / 1000).round(2), idle: (grown / clients / 1000.0).round(1) }, crowd]
    end

    def broadcast(server, crowd, clients)
      times = [@options[:deliveries] / clients, 1].max
      delivered = 0
      cpu = used(server) { delivered = crowd.shout(times, BYTES) }
      cpu / delivered
    end

    def used(server)
      before = server.cpu_us
      yield
      server.cpu_us - before
    end
  end
end
