# frozen_string_literal: true

# Measures a storm of reconnections: many readers of event streams come back to a server that has just begun, within a
# few seconds, and each has missed the whole history of its channel, which Redis has:
# `ruby bench/reconnects.rb [--clients N] [--channels N] [--history N] [--within S]`.
#
# - Reads of a stream in Redis for each channel.
# - Waits of a plain request meanwhile, beside those before.
# - Whether each reader got what it missed: none, or more, and no `reset`.
# SPDX-License-Identifier: MIT

require "json"
require "optparse"
require "socket"
require "timeout"
require "tmpdir"
require_relative "measure"

module Bench
  # The readers of one process, which has one thread.
  class ComingBack
    # @param port [Integer]
    # @param channels [Array<String>] of each reader
    # @param wanted [Integer] events of each
    # @param within [Float] seconds, over which they come
    def initialize(port, channels, wanted, within)
      @port = port
      @waiting = channels
      @wanted = wanted
      @pause = within / channels.size
      @open = {}
      @kept = []
      @counts = Hash.new(0)
      @said = { "complete" => 0, "more" => 0, "resets" => 0, "refused" => 0 }
    end

    # @param patience [Numeric] seconds for the last event
    # @return [Hash{String => Integer}] how many readers got what
    def run(patience)
      due = now
      limit = due + patience
      until (@waiting.empty? && @open.empty?) || now > limit
        (connect && due += @pause) while @waiting.any? && due <= now
        read_some
      end
      @said.merge("incomplete" => @open.size + @waiting.size)
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def connect
      socket = TCPSocket.new("127.0.0.1", @port)
      socket.write("GET /?#{@waiting.shift} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n" \
                   "Last-Event-ID: #{ENV.fetch("LAST_ID")}\r\n\r\n")
      @open[socket] = +"".b
    end

    def read_some
      ready, = IO.select(@open.keys, nil, nil, @waiting.any? ? @pause : 0.1)
      ready&.each do |socket|
        bytes = socket.read_nonblock(65_536, exception: false)
        bytes.is_a?(String) ? note(socket, @open[socket] << bytes) : (bytes.nil? && refuse(socket))
      end
    end

    def refuse(socket)
      @said["refused"] += 1
      @open.delete(socket).close
    end

    # It stays connected, as clients do.
    def note(socket, text)
      count = text.scan("\nid: ").size
      return if count < @wanted && !text.include?("event: reset")

      @said["resets"] += 1 if text.include?("event: reset")
      @said[count > @wanted ? "more" : "complete"] += 1
      @kept << socket
      @open.delete(socket)
    end
  end

  # The measurement and its lines.
  class Reconnects
    APP = <<~'RUBY'
      Rondo::PubSub.history("kept:*", match: :redis, size: 1000)
      class Feed
        def initialize(name) = @name = name
        def on_open(client) = client.subscribe(@name)
      end
      run lambda { |env|
        channel = env["QUERY_STRING"]
        if env["rack.upgrade?"]
          env["rack.upgrade"] = Feed.new(channel)
          next [200, {}, []]
        end
        env["rack.input"].read.split("\n").each { |text| Rondo.publish(channel, text, confirm: 30) } if env["REQUEST_METHOD"] == "POST"
        [200, { "content-type" => "text/plain" }, ["hello"]]
      }
    RUBY
    # A process has 20,000 descriptors at most, and select takes time for each.
    PROCESSES = 4
    PATIENCE = 120

    def initialize(arguments)
      @clients, @channels, @history, @within = 10_000, 10, 100, 5.0
      OptionParser.new do |options|
        options.on("--clients N", Integer, "that come back (10000)") { |count| @clients = count }
        options.on("--channels N", Integer, "that they read (10)") { |count| @channels = count }
        options.on("--history N", Integer, "messages that each has missed (100)") { |count| @history = count }
        options.on("--within S", Float, "seconds in which they come (5)") { |seconds| @within = seconds }
      end.parse!(arguments)
    end

    # @return [void]
    def call
      Programs.build
      Programs.compile_rondo
      Dir.mktmpdir("rondo-reconnects") do |folder|
        File.write(@file = File.join(folder, "config.ru"), APP)
        begin_redis(folder)
        fill
        serve { measure }
      ensure
        Process.kill("KILL", @redis) && Process.wait(@redis) if @redis
      end
    end

    private

    def free_port
      Addrinfo.tcp("127.0.0.1", 0).bind { |socket| socket.local_address.ip_port }
    end

    def begin_redis(folder)
      @redis_port = free_port
      @redis = spawn("redis-server", "--bind", "127.0.0.1", "--port", @redis_port.to_s, "--save", "", "--dir", folder,
                     out: File::NULL)
      Timeout.timeout(60) { sleep 0.05 until redis("PING") == "PONG" }
    end

    def redis(*words)
      IO.popen(["redis-cli", "-p", @redis_port.to_s, *words, { err: File::NULL }], &:read).strip
    end

    def names
      Array.new(@channels) { |number| "kept:#{number}" }
    end

    # By another server, so that the one that is measured has no copy.
    def fill
      serve do
        body = Array.new(@history) { |number| "message #{number}#{"." * 80}" }.join("\n")
        names.each do |name|
          ask("POST /?#{name} HTTP/1.1\r\nHost: x\r\nContent-Length: #{body.bytesize}\r\n" \
              "Connection: close\r\n\r\n#{body}")
        end
      end
      # Before the first message, and known to this Redis.
      @last_id = redis("GET", "{rondo}:begin")
    end

    def ask(request)
      TCPSocket.open("127.0.0.1", @port) { |socket| socket.write(request) && socket.read }
    end

    def serve
      @port = free_port
      @pid = spawn("taskset", "-c", SERVER_CPU.to_s, Gem.ruby, "-I", File.join(ROOT, "lib"),
                   File.join(ROOT, "exe/rondo"), "-q", "-w", "1", "--redis-streams", "redis://127.0.0.1:#{@redis_port}",
                   "-b", "tcp://127.0.0.1:#{@port}", @file)
      wait
      yield
    ensure
      Process.kill("TERM", @pid) && Process.wait(@pid) if @pid
      @pid = nil
    end

    def wait
      Timeout.timeout(60) do
        sleep 0.05 until ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").include?("hello")
      rescue SystemCallError
        sleep 0.05
        retry
      end
    end

    def measure
      before = waits(@within)
      reads = scripts
      readers = come_back
      during = waits(@within)
      found = readers.map { |reader| JSON.parse(reader.read) }.reduce { |one, two| one.merge(two) { |_, a, b| a + b } }
      puts "#{@clients} readers of #{@channels} channels came back within #{@within} s; " \
           "each missed #{@history} messages."
      puts "Readers: #{found.map { |what, count| "#{count} #{what}" }.join(", ")}"
      puts format("Scripts in Redis for each channel: %.2f", (scripts - reads).fdiv(@channels))
      puts "A plain request, one after the other: #{in_words(before)} before; #{in_words(during)} meanwhile"
    end

    # @return [Integer] scripts that Redis has run
    def scripts
      redis("INFO", "commandstats")[/cmdstat_evalsha:calls=(\d+)/, 1].to_i
    end

    def come_back
      all = Array.new(@clients) { |number| names[number % @channels] }
      lists = all.each_slice((@clients / PROCESSES.to_f).ceil)
      lists.map do |list|
        reader, writer = IO.pipe
        fork do
          ENV["LAST_ID"] = @last_id
          writer.write(JSON.generate(ComingBack.new(@port, list, @history, @within).run(PATIENCE)))
          writer.close
          exit!(0)
        end
        writer.close
        reader
      end
    end

    def waits(seconds)
      said = IO.popen([Programs.path("client"), "--json", "--pin", CLIENT_CPU.to_s, "-c", "1", "-d", seconds.to_s,
                       "127.0.0.1:#{@port}/"], &:read)
      JSON.parse(said)
    end

    def in_words(said)
      said.select { |name, _| name.match?(/p50|p99|max/) }.map { |name, value| "#{name} #{value}" }.join(", ")
    end
  end
end

Bench::Reconnects.new(ARGV).call if $PROGRAM_NAME == __FILE__
