# frozen_string_literal: true

# ActionController::Live: many streams at once that say one word and then nothing, and plain requests beside them.
# SPDX-License-Identifier: MIT

require "json"
require_relative "programs"
require_relative "rails_servers"

module Bench
  # Readers of streams.
  class LiveReaders
    REQUEST = "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    WORD = "begun"

    def initialize(port, count)
      @waiting = Array.new(count) { TCPSocket.new("127.0.0.1", port).tap { |socket| socket.write(REQUEST) } }
      @answered = []
    end

    # @param patience [Numeric] seconds
    # @return [Integer] those who have got the word by then
    def listen(patience)
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + patience
      until @waiting.empty? || (left = limit - Process.clock_gettime(Process::CLOCK_MONOTONIC)).negative?
        ready, = IO.select(@waiting, nil, nil, left)
        take(ready || [])
      end
      @answered.size
    end

    # @return [void]
    def close
      (@waiting + @answered).each(&:close)
    end

    private

    # Head and word are often two packets.
    def take(ready)
      heard = ready.select { |socket| socket.readpartial(4096).include?(WORD) }
      @waiting -= heard
      @answered.concat(heard)
    end
  end

  # The table.
  class RailsLive
    STREAMS = 1000
    THREADS = 5
    PATIENCE = 30
    COLUMNS = { answered: "streams answered", last: "the last one after, s", threads: "threads for a stream",
                memory: "KB for a stream", p50: "plain request beside, p50, ms", p99: "p99, ms" }.freeze

    # @param options [Hash] servers [Array<String>], streams [Integer]
    def initialize(options)
      @options = options
    end

    # @return [String] Markdown
    def call
      Programs.build
      names = (@options[:servers] - ["anycable"]).select { |name| RailsServer.version(name) }
      head = ["Live", *COLUMNS.values]
      table = [head, head.map { "---" }, *names.map { |name| row(name) }].map { |cells| "| #{cells.join(" | ")} |" }
      about = "#{@options[:streams]} streams at once, -t #{THREADS}:#{THREADS}, each says one word, then nothing. " \
              "Waiting ends after #{PATIENCE} s. Must, stretch: the last one 2 s, 1 s; p99 20 ms, 10 ms; threads 1."
      ["## ActionController::Live", about, table.join("\n")].join("\n\n")
    end

    private

    def row(name)
      found = RailsServer.run(name, threads: THREADS) { |server| measure(server) }
      ["#{RailsServer::NAMES.fetch(name)} #{RailsServer.version(name)}", *found.values_at(*COLUMNS.keys)]
    rescue StandardError => e
      ["#{RailsServer::NAMES.fetch(name)} #{RailsServer.version(name)}", "failed: #{e.message}", *[""] * 5]
    end

    def measure(server)
      plain(server) # warms up
      before = [server.threads, server.anonymous_bytes]
      since = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      readers = LiveReaders.new(server.port, @options[:streams])
      answered = readers.listen(PATIENCE)
      found = { answered: answered, last: (Process.clock_gettime(Process::CLOCK_MONOTONIC) - since).round(2) }
      found.merge(grown(server, *before, answered), plain(server))
    ensure
      readers&.close
    end

    def grown(server, threads, bytes, streams)
      { threads: ((server.threads - threads) / streams.to_f).round(2),
        memory: ((server.anonymous_bytes - bytes) / streams / 1000.0).round(1) }
    end

    def plain(server)
      client = [Programs.path("client"), "--json", "-c", "4", "-d", @options[:seconds].to_s, "--leave",
                "127.0.0.1:#{server.port}/plain"]
      said = JSON.parse(IO.popen(["taskset", "-c", CLIENT_CPU.to_s, *client], &:read))
      return { p50: "none", p99: "none" } if said["requests"].zero?

      { p50: (said["p50_us"] / 1000).round(2), p99: (said["p99_us"] / 1000).round(2) }
    end
  end
end
