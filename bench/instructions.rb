# frozen_string_literal: true

# Instructions per request in user space, counted by callgrind: the figure for regressions, because it does not change
# on a busy machine. `ruby bench/instructions.rb [options]`. It counts the whole process, with the application, from the
# warm-up to the end of that many requests. With --function it counts only the instructions below that function (a turn
# of the loop). Beside the requests of requests.rb there are plain ones in other ways: `pipelined`, sixteen at a time,
# `one`, on one connection, and `closing`, each on a new connection. `echo`, `broadcast` and `raw` are counted per
# delivered message: the first two of WebSockets, the last one the echo of raw connections (raw.rb).
# SPDX-License-Identifier: MIT

require "optparse"
require_relative "measure"
require_relative "push"
require_relative "raw"
require_relative "report"

module Bench
  # One server under callgrind.
  class Instructions
    # The goals: request => [must, stretch], in instructions.
    GOALS = { browser: [20_000, 12_000] }.freeze
    WARM_UP = 2_000
    # Options of the client for plain requests.
    PLAIN = { pipelined: %w[-p 16], one: %w[-c 1], closing: %w[--close] }.freeze
    # Slots of Ruby's heap. Without it the number of pages depends on the time of the last collection at boot, and so
    # does the number of collections: 44 or 62 in 20,000 requests, which is 1 % of all instructions.
    HEAP = { "RUBY_GC_HEAP_INIT_SLOTS" => "60000" }.freeze
    # The WebSockets for a load, and the messages that their client gets again and again.
    PUSH = { echo: [64, "/echo", ["echo", 100, 0.5]],
             broadcast: [100, "/subscribe", ["publish", 100, 1, 20, 0, 0]] }.freeze
    RAW = ["echo", RawRun::BYTES, 0.5].freeze
    # Under callgrind a request takes some 80 us. With its usual times a batch would end after two or three of them, and
    # a round of requests in flight after one.
    SLOWED = "batch_us 10000\nquantum_us 2500\n"

    # @param tls [Symbol, nil] the kind of the key of its certificate; nil: plain
    def initialize(server, requests:, function:, tls: nil)
      @server = server
      @requests = requests
      @function = function
      @tls = tls
    end

    # @param names [Array<Symbol>] of {Requests}, of {PUSH}, `:pipelined` or `:raw`
    # @return [Hash{Symbol => Float}] instructions per request, or per message
    def count(names)
      raw, names = names.partition { |name| name == :raw }
      push, requests = names.partition { |name| PUSH.key?(name) }
      counts = requests.any? ? under_callgrind("hello") { requests.to_h { |name| [name, per_request(name)] } } : {}
      push.each { |name| counts[name] = under_callgrind("push") { per_message(*PUSH.fetch(name)) } }
      raw.each { |name| counts[name] = under_callgrind { per_raw_message } }
      counts
    end

    private

    # @param app [String, nil] nil: the server of raw connections
    def under_callgrind(app = nil)
      HEAP.each { |name, slots| ENV[name] ||= slots }
      Dir.mktmpdir("callgrind") do |folder|
        @out = File.join(folder, "out")
        @running = start(app)
        yield
      ensure
        @running&.stop
      end
    end

    def start(app)
      return RawServer.new(@server.name, wrapper: valgrind) if app.nil?

      Running.new(@server.name == "rondo" ? slowed : @server, app, tls: @tls, wrapper: valgrind)
    end

    def slowed
      file = File.join(File.dirname(@out), "slowed.rb")
      File.write(file, SLOWED)
      longer = ->(make) { ->(*arguments) { make.call(*arguments).insert(-2, "-C", file) } }
      @server.dup.tap do |copy|
        copy.command, copy.secure = longer.call(copy.command), longer.call(copy.secure)
      end
    end

    def valgrind
      ["valgrind", "--tool=callgrind", "--trace-children=yes", "--callgrind-out-file=#{@out}.%p",
       *(@function && "--toggle-collect=#{@function}")]
    end

    def per_request(name)
      send_some(name, WARM_UP)
      all = instructions { send_some(name, @requests) }
      return all / @requests unless @tls

      (instructions { send_some(name, 2 * @requests) } - all) / @requests # without the handshakes
    end

    def per_message(sockets, path, command)
      PushClient.run(@running.port) do |client|
        client.open(sockets, path)
        per_delivery(client, command)
      end
    end

    def per_raw_message
      RawClient.run(@running.port) do |client|
        client.tell("open", RawRun::CONNECTIONS)
        per_delivery(client, RAW)
      end
    end

    def per_delivery(client, command)
      deliver(client, command, WARM_UP)
      delivered = 0
      instructions { delivered = deliver(client, command, @requests) } / delivered
    end

    # @return [Integer] how many there were, a few more than requested
    def deliver(client, command, count)
      delivered = 0
      delivered += client.tell(*command).values_at(:deliveries, :messages).compact.first while delivered < count
      delivered
    end

    def instructions
      control("--zero")
      yield
      Dir.glob("#{@out}.*").each { |file| File.delete(file) }
      control("--dump")
      collected
    end

    def send_some(name, count)
      options = PLAIN[name]
      file = Programs.request_file(options ? :plain : name)
      client = [Programs.path("client"), "--json", "-n", count.to_s, "-d", "120", *options,
                *(@tls && %w[--tls full]), "--request", file, "127.0.0.1:#{@running.port}"]
      said = JSON.parse(IO.popen(client, &:read))
      raise Silent, "#{@server.name} answered too little" if said["requests"] < count
    end

    def control(order)
      Processes.tree(@running.pid).each do |pid|
        system("callgrind_control", order, pid.to_s, out: File::NULL, err: File::NULL)
      end
    end

    def collected
      Dir.glob("#{@out}.*").sum { |file| File.read(file)[/^(?:totals|summary): (\d+)/, 1].to_f }
    end
  end
end

if $PROGRAM_NAME == __FILE__
  names = %w[rondo]
  requests = %i[plain browser]
  count = 10_000
  function = tls = fibers = nil
  OptionParser.new do |options|
    options.on("--servers A,B", Array, "rondo if not said") { |list| names = list }
    options.on("--requests A,B", Array, "plain,browser") { |list| requests = list.map(&:to_sym) }
    options.on("-n COUNT", Integer, "requests to count (10000)") { |number| count = number }
    options.on("--tls KEY", "over TLS, with a key p256 or rsa2048; not for push") { |key| tls = key.to_sym }
    options.on("--fibers N", Integer, "of Rondo; not for raw") { |number| fibers = number }
    options.on("--function NAME", "only below it") { |name| function = name }
  end.parse!
  Bench::Programs.build
  Bench::Programs.compile_rondo if names.include?("rondo")
  puts "| server | request | instructions/request or message | must | stretch |", "|---|---|---|---|---|"
  names.each do |name|
    server = Bench::Servers.all.fetch(name)
    server = Bench::Servers.with_fibers(server, fibers) if fibers
    Bench::Instructions.new(server, requests: count, function: function, tls: tls).count(requests)
                       .each do |request, figure|
      goal = Bench::Instructions::GOALS.fetch(request, %w[- -])
      puts "| #{server.title} | #{request} | #{figure.round} | #{goal.join(" | ")} |"
    end
  rescue Bench::Running::BootError, Bench::Silent => e
    puts "| #{name} | #{e.message.lines.first.chomp} | - | - | - |"
  end
end
