# frozen_string_literal: true

# Instructions per request in user space, counted by callgrind: the figure for regressions, because
# it stands still on a busy machine. `ruby bench/instructions.rb [options]`; all of the process is
# counted, the application too, between the warm-up and the end of so many requests. With --function
# only what runs below that function (a turn of the loop) counts. Beside the requests of requests.rb
# there are `pipelined`, sixteen plain ones at a time, and, per message that is delivered, `echo` and
# `broadcast`.
# SPDX-License-Identifier: MIT

require "optparse"
require_relative "measure"
require_relative "push"
require_relative "report"

module Bench
  # One server under callgrind.
  class Instructions
    # What the goals say: request => [must, stretch], in instructions.
    GOALS = { browser: [20_000, 12_000] }.freeze
    WARM_UP = 2_000
    PIPELINED = %w[-p 16].freeze
    # Slots of Ruby's heap. Without it the pages depend on where the last collection of the boot fell, and
    # so do the collections for each thousand requests: 44 or 62 in 20,000, which is 1 % of all instructions.
    HEAP = { "RUBY_GC_HEAP_INIT_SLOTS" => "60000" }.freeze
    # What WebSockets there are for a load, and what their client is told again and again.
    PUSH = { echo: [64, "/echo", ["echo", 100, 0.5]],
             broadcast: [100, "/subscribe", ["publish", 100, 1, 20, 0, 0]] }.freeze

    def initialize(server, requests:, function:)
      @server = server
      @requests = requests
      @function = function
    end

    # @param names [Array<Symbol>] of {Requests}, of {PUSH}, or `:pipelined`
    # @return [Hash{Symbol => Float}] instructions per request, or per message
    def count(names)
      push, requests = names.partition { |name| PUSH.key?(name) }
      counts = requests.any? ? under_callgrind("hello") { requests.to_h { |name| [name, per_request(name)] } } : {}
      push.each { |name| counts[name] = under_callgrind("push") { per_message(*PUSH.fetch(name)) } }
      counts
    end

    private

    def under_callgrind(app)
      HEAP.each { |name, slots| ENV[name] ||= slots }
      Dir.mktmpdir("callgrind") do |folder|
        @out = File.join(folder, "out")
        @running = Running.new(@server, app, wrapper: valgrind)
        yield
      ensure
        @running&.stop
      end
    end

    def valgrind
      ["valgrind", "--tool=callgrind", "--trace-children=yes", "--callgrind-out-file=#{@out}.%p",
       *(@function && "--toggle-collect=#{@function}")]
    end

    def per_request(name)
      send_some(name, WARM_UP)
      instructions { send_some(name, @requests) } / @requests
    end

    def per_message(sockets, path, command)
      PushClient.run(@running.port) do |client|
        client.open(sockets, path)
        deliver(client, command, WARM_UP)
        delivered = 0
        instructions { delivered = deliver(client, command, @requests) } / delivered
      end
    end

    # @return [Integer] how many there were, some more than asked for
    def deliver(client, command, count)
      delivered = 0
      delivered += client.tell(*command)[:deliveries] while delivered < count
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
      options = PIPELINED if name == :pipelined
      file = Programs.request_file(options ? :plain : name)
      client = [Programs.path("client"), "--json", "-n", count.to_s, "-d", "120", *options,
                "--request", file, "127.0.0.1:#{@running.port}"]
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
  function = nil
  OptionParser.new do |options|
    options.on("--servers A,B", Array, "rondo if not said") { |list| names = list }
    options.on("--requests A,B", Array, "plain,browser") { |list| requests = list.map(&:to_sym) }
    options.on("-n COUNT", Integer, "requests to count (10000)") { |number| count = number }
    options.on("--function NAME", "only below it") { |name| function = name }
  end.parse!
  Bench::Programs.build
  Bench::Programs.compile_rondo if names.include?("rondo")
  puts "| server | request | instructions/request or message | must | stretch |", "|---|---|---|---|---|"
  names.each do |name|
    server = Bench::Servers.all.fetch(name)
    Bench::Instructions.new(server, requests: count, function: function).count(requests)
                       .each do |request, figure|
      goal = Bench::Instructions::GOALS.fetch(request, %w[- -])
      puts "| #{server.title} | #{request} | #{figure.round} | #{goal.join(" | ")} |"
    end
  rescue Bench::Running::BootError, Bench::Silent => e
    puts "| #{name} | #{e.message.lines.first.chomp} | - | - | - |"
  end
end
