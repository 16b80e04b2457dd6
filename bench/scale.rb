# frozen_string_literal: true

# Measures how the cost of a request or of a delivered message grows with what is there in numbers:
#
#   ruby bench/scale.rb [--rounds N] [--seconds S] [--out FILE.md] [NAME...]     all if none is named
#
# - connections: open ones beside the 64 that ask
# - fields: header fields of the request, the same ones each time, or with a cookie, which is parsed each time
# - paths: different paths that are asked for in turn
# - channels: those that nothing is published to, while messages go to 64 subscribers of another one
# - timers: those that are not due
# - workers: processes that share the connections
#
# Every size has a server of its own, and all sizes of a row are measured in turn in every round. The ratios are medians
# of those within a round. --out also draws a picture beside the file. Means something on a quiet machine only.
# SPDX-License-Identifier: MIT

require "json"
require "optparse"
require_relative "curves"
require_relative "measure"
require_relative "report"

module Bench
  # One server with a number of something.
  class Sized
    CONNECTIONS = 64
    WARM_UP = 0.5
    MESSAGES = 500 # published in half a second, for each second of a measurement

    # @param app [String] of bench/apps
    # @param processes [Integer, nil] that serve
    def initialize(app = "hello", processes: nil)
      @running = Running.new(Servers.all.fetch("rondo"), app, processes: processes)
    end

    # Asks once, for what the application makes then.
    def ask(path)
      client("-c", "1", "-n", "1", "-d", "60", path: path)
      self
    end

    # Asks with these options of the client when it is measured.
    def with(*options)
      @options = options
      self
    end

    # Holds so many connections besides.
    def hold(count)
      return self if count.zero?

      @held = IO.popen([Programs.path("client"), "--json", "--pin", CLIENT_CPU.to_s, "--idle", count.to_s, "-d", "60",
                        "127.0.0.1:#{@running.port}"], "r+")
      there = JSON.parse(@held.gets || "{}")["idle"]
      raise Silent, "only #{there.to_i} of #{count} connections opened" unless there == count

      self
    end

    # @return [Float] µs of CPU per request
    def measure(seconds)
      @running.resume
      client("-d", WARM_UP.to_s, *@options)
      before = @running.cpu_us
      said = client("-d", seconds.to_s, *@options)
      (@running.cpu_us - before) / said["requests"]
    ensure
      @running.pause
    end

    def stop
      @held&.close
      @running.stop
    end

    private

    def client(*options, path: "/")
      said = IO.popen([Programs.path("client"), "--json", "--pin", CLIENT_CPU.to_s, "-c", CONNECTIONS.to_s, *options,
                       "127.0.0.1:#{@running.port}#{path}"], &:read)
      JSON.parse(said).tap do |counted|
        wrong = counted.values_at("errors", "non_2xx", "connect_errors").sum
        raise Silent, "#{wrong} of #{counted["requests"]} answers were wrong" if wrong.positive?
      end
    end
  end

  # The same with subscribers of one channel, who are subscribed to others, too.
  class SizedChannels < Sized
    BYTES = 100

    # @param count [Integer] channels besides, over all subscribers
    def initialize(count)
      super("scale")
      @path = "/subscribe?#{count / CONNECTIONS}"
      @io = IO.popen([Programs.path("push_client"), "--pin", CLIENT_CPU.to_s, @running.port.to_s], "r+")
      @sockets = PushClient.new(@io)
      @sockets.open(CONNECTIONS, @path)
    end

    # @return [Float] µs of CPU per delivery
    def measure(seconds)
      @running.resume
      publish(WARM_UP)
      before = @running.cpu_us
      found = publish(seconds)
      raise Silent, "wrong: #{found}" unless found.values_at(:missing, :doubled, :strange, :lost).sum.zero?

      (@running.cpu_us - before) / found[:deliveries]
    ensure
      @running.pause
    end

    def stop
      @io.close
      super
    end

    private

    def publish(seconds)
      @sockets.tell("publish", BYTES, 1, (MESSAGES * 2 * seconds).ceil, 0, 0)
    end
  end

  # What is there in numbers, and how a server with so many of it is made.
  #
  # @!attribute of [String] what the cost is of
  Growing = Struct.new(:title, :of, :sizes, :make, keyword_init: true)

  # The measurements, their table and their picture.
  class ScaleRun
    COOKIE = ["-H", "Cookie: session=0123456789abcdef"].freeze
    FIELDS = ->(count) { Array.new(count) { |n| ["-H", "X-Field-#{n}: value #{n}"] }.flatten }
    ROWS = {
      "connections" => Growing.new(title: "open connections", of: "request", sizes: [64, 1_000, 10_000, 19_000],
                                   make: ->(count) { Sized.new.hold(count - Sized::CONNECTIONS) }),
      "fields" => Growing.new(title: "header fields, the same each time", of: "request", sizes: [1, 10, 30, 100],
                              make: ->(count) { Sized.new.with(*FIELDS[count - 1]) }),
      "cookies" => Growing.new(title: "header fields, with a cookie", of: "request", sizes: [2, 10, 30, 100],
                               make: ->(count) { Sized.new.with(*COOKIE, *FIELDS[count - 2]) }),
      "paths" => Growing.new(title: "paths in turn", of: "request", sizes: [1, 10, 100, 1_000, 10_000],
                             make: ->(count) { Sized.new.with("--paths", count.to_s) }),
      "channels" => Growing.new(title: "channels", of: "delivery", sizes: [64, 512, 5_120, 51_200],
                                make: ->(count) { SizedChannels.new(count) }),
      "timers" => Growing.new(title: "timers", of: "request", sizes: [1, 100, 1_000, 10_000, 90_000],
                              make: ->(count) { Sized.new("scale").ask("/timers?#{count}") }),
      "workers" => Growing.new(title: "workers", of: "request", sizes: [1, 2, 4, 8],
                               make: ->(count) { Sized.new(processes: count) })
    }.freeze

    def initialize(arguments)
      @rounds, @seconds = 7, 1.0
      @names = parser.parse(arguments)
      @names = ROWS.keys if @names.empty?
      unknown = @names - ROWS.keys
      abort "bench: no such row: #{unknown.first}; there are #{ROWS.keys.join(", ")}" if unknown.any?
    end

    # @return [void]
    def call
      Programs.build
      Programs.compile_rondo
      measured = @names.to_h { |name| [ROWS.fetch(name), measure(ROWS.fetch(name))] }
      text = markdown(measured)
      return puts(text) unless @out

      File.write(@out, text)
      File.write(@out.sub(/\.md\z|\z/, ".svg"), picture(measured))
    end

    private

    def parser
      OptionParser.new do |options|
        options.on("--rounds N", Integer, "alternating rounds (7)") { |count| @rounds = count }
        options.on("--seconds S", Float, "of a measurement (1)") { |seconds| @seconds = seconds }
        options.on("--out FILE", "write the Markdown there, and a picture beside it") { |file| @out = file }
      end
    end

    # @return [Array<Array<Float>>] of each round the cost at each size
    def measure(row)
      servers = row.sizes.map { |size| row.make.call(size) }
      Array.new(@rounds) do |round|
        warn "bench: #{row.title}, round #{round + 1}"
        servers.map { |server| server.measure(@seconds) }
      end
    ensure
      servers&.each(&:stop)
    end

    def ratios(rounds)
      rounds.map { |costs| costs.map { |cost| cost / costs.first } }.transpose.map { |each| Statistics.median(each) }
    end

    # @return [Float] what ten times as many add, as a share of the cost at the first size: the line with least squares
    def slope(sizes, ratios)
      tens = sizes.map { |size| Math.log10(size) }
      middle, level = tens.sum / tens.size, ratios.sum / ratios.size
      tens.zip(ratios).sum { |ten, ratio| (ten - middle) * (ratio - level) } / tens.sum { |ten| (ten - middle)**2 }
    end

    def markdown(measured)
      tables = measured.map { |row, rounds| table(row, rounds) }
      "# Cost as things grow, #{Time.now.utc.strftime("%F %R UTC")}\n\n#{conditions}\n\n#{tables.join("\n")}"
    end

    def conditions
      "`ruby bench/scale.rb --rounds #{@rounds} --seconds #{@seconds}`. #{Bench.machine}. " \
        "Server on CPU #{SERVER_CPU}, client on CPU #{CLIENT_CPU}; #{Sized::CONNECTIONS} connections; " \
        "medians, ratios within rounds."
    end

    def table(row, rounds)
      found = ratios(rounds)
      lines = row.sizes.zip(rounds.transpose, found).map do |size, costs, ratio|
        format("| %<size>d | %<cost>.2f | %<ratio>.3f |", size: size, cost: Statistics.median(costs), ratio: ratio)
      end
      <<~MARKDOWN
        ## #{row.title}

        | #{row.title} | server CPU µs/#{row.of} | over the first |
        |---|---|---|
        #{lines.join("\n")}

        Ten times as many: #{format("%+.1f %%", 100 * slope(row.sizes, found))}.
      MARKDOWN
    end

    def picture(measured)
      lines = measured.map { |row, rounds| Curves::Line.new(row.title, row.sizes.zip(ratios(rounds))) }
      Curves.new("Cost over the cost at the first size", lines, drawn_by: "bench/scale.rb").to_s
    end
  end
end

Bench::ScaleRun.new(ARGV).call if $PROGRAM_NAME == __FILE__
