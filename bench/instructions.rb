# frozen_string_literal: true

# Instructions per request in user space, counted by callgrind: the figure for regressions, because
# it stands still on a busy machine. `ruby bench/instructions.rb [options]`; all of the process is
# counted, the application too, between the warm-up and the end of so many requests. With --function
# only what runs below that function (a turn of the loop) counts.
# SPDX-License-Identifier: MIT

require "optparse"
require_relative "measure"
require_relative "report"

module Bench
  # One server under callgrind.
  class Instructions
    # What the goals say: request => [must, stretch], in instructions.
    GOALS = { browser: [20_000, 12_000] }.freeze
    WARM_UP = 2_000

    def initialize(server, requests:, function:)
      @server = server
      @requests = requests
      @function = function
    end

    # @param names [Array<Symbol>] of {Requests}
    # @return [Hash{Symbol => Float}] instructions per request
    def count(names)
      Dir.mktmpdir("callgrind") do |folder|
        @out = File.join(folder, "out")
        @running = Running.new(@server, "hello", wrapper: valgrind)
        names.to_h { |name| [name, per_request(name)] }
      ensure
        @running&.stop
      end
    end

    private

    def valgrind
      ["valgrind", "--tool=callgrind", "--trace-children=yes", "--callgrind-out-file=#{@out}.%p",
       *(@function && "--toggle-collect=#{@function}")]
    end

    def per_request(name)
      send_some(name, WARM_UP)
      control("--zero")
      send_some(name, @requests)
      Dir.glob("#{@out}.*").each { |file| File.delete(file) }
      control("--dump")
      collected / @requests
    end

    def send_some(name, count)
      client = [Programs.path("client"), "--json", "-n", count.to_s, "-d", "120",
                "--request", Programs.request_file(name), "127.0.0.1:#{@running.port}"]
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
  puts "| server | request | instructions/request | must | stretch |", "|---|---|---|---|---|"
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
