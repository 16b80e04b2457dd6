# frozen_string_literal: true

# A scenario has an application, requests, a number of connections, and a goal for one of its ratios. The scenarios
# themselves are the files of bench/scenarios, a few lines each; measure.rb runs them, report.rb prints them.
# SPDX-License-Identifier: MIT

module Bench
  # One line of the table of goals. The figure is `metric` of the server `of` (Rondo), divided by that of the server
  # `over` in the same round if there is one. If there are several, it is divided by the better one's.
  Goal = Struct.new(:text, :metric, :of, :over, :must, :stretch, :at_least, keyword_init: true) do
    # @return [Array<String>] the servers it is compared with: the better one of them in each round
    def rivals
      Array(over)
    end

    # @param rivals [Array<Float>]
    # @return [Float] the best of them
    def best(rivals)
      at_least ? rivals.max : rivals.min
    end

    # @param figure [Float]
    # @return [String] "stretch", "must" or "missed"
    def verdict(figure)
      return "stretch" if within?(figure, stretch)

      within?(figure, must) ? "must" : "missed"
    end

    # @return [String] "≤" or "≥"
    def sign
      at_least ? "≥" : "≤"
    end

    private

    def within?(figure, limit)
      at_least ? figure >= limit : figure <= limit
    end
  end

  # Built by the files of bench/scenarios through {Bench.scenario}.
  class Scenario
    # How `run.rb` measures it: :load (the client for a while), :idle, :allocations, or as push.rb, files.rb,
    # fiber_servers.rb and http2_figures.rb say.
    KINDS = %i[load idle allocations starting
               echo chat broadcast bystander idle_sockets stalled patterns
               hot cold fetch stuck slow crowded beside_stuck
               watched asleep computing spinning
               shared upload downloading stuck_streams stranded_streams].freeze

    # The ways to answer a file: from a static folder of the server, or as apps/files.ru says.
    ANSWERS = %i[static string each to_path sendfile].freeze

    attr_reader :name, :title, :goals, :columns, :client_options, :requests, :connections

    def initialize(name)
      @name = name
      @app = "hello"
      @kind = :load
      @connections = 64
      @requests = [:plain]
      @client_options = []
      @goals = []
      @columns = %i[cpu_us rps busy p50_us p99_us longest_us]
    end

    # @overload app(name) sets the application of bench/apps, "hello" if never called
    # @overload app() returns it
    def app(name = @app)
      @app = name
    end

    # One of {KINDS}.
    def kind(kind = @kind)
      @kind = kind
    end

    # The application that is measured in the same round with plain requests, so that the metric
    # `kept` is the share of its requests per second.
    def beside(app = @beside)
      @beside = app
    end

    # Application threads of each server that can have more than one.
    def threads(threads = @threads || 1)
      @threads = threads
    end

    # Requests per second in the ideal case; the metric `of_ideal` is the share of them.
    def ideal(ideal = @ideal)
      @ideal = ideal
    end

    # Rounds, if the command line sets no number.
    def rounds(rounds = @rounds || 5)
      @rounds = rounds
    end

    # Seconds after which no further round begins; no limit if never called.
    def within(seconds = @within || Float::INFINITY)
      @within = seconds
    end

    # Whether each round has a new process, because memory that the one before left would help this one.
    def fresh(fresh = @fresh)
      @fresh = fresh
    end

    # The path: where idle WebSockets are opened, or the file.
    def path(path = @path || (answered == :static ? "/#{@file}" : "/#{@answered}"))
      @path = path
    end

    # The file that is fetched, one of those of files.rb.
    def file(file = @file)
      @file = file
    end

    # One of {ANSWERS}.
    def answered(way = @answered || :static)
      @answered = way
    end

    # Plain requests each second beside the downloads.
    def bystanders(per_second = @bystanders || 0)
      @bystanders = per_second
    end

    # Servers whose applications compute all the time are stopped while others are measured.
    def restless(restless = @restless)
      @restless = restless
    end

    # How many times longer than usual one measurement takes.
    def lasting(times = @lasting || 1)
      @lasting = times
    end

    # Worker processes; nil: one, as each server is measured. Otherwise only Rondo takes part.
    def workers(count = @workers)
      @workers = count
    end

    # Processes of each server that serve; nil: one.
    def processes(count = @processes)
      @processes = count
    end

    # The kind of the key of the servers' certificates, one of {Pair::KEYS}; nil: no TLS.
    def tls(kind = @tls)
      @tls = kind
    end

    # Requests of HTTP/2 on their way on each connection; nil: HTTP/1.1.
    def http2(streams = @http2)
      @http2 = streams
    end

    # The path that the client of HTTP/2 asks for.
    def page(path = @page || "/")
      @page = path
    end

    # Whether only Rondo takes part.
    def alone(alone = @alone)
      @alone = alone
    end

    # How its client shakes hands, :full or :resumed.
    def handshakes(way = @handshakes || :full)
      @handshakes = way
    end

    # Sets the headline of its table.
    def describe(title)
      @title = title
    end

    # Sets the number of connections.
    def over_connections(count)
      @connections = count
    end

    # Sets the requests by name (see requests.rb), sent in turn.
    def send_requests(*names)
      @requests = names
    end

    # Sets further options for the client, as on its command line.
    def client(*options)
      @client_options = options
    end

    # Sets the metrics its table shows.
    def show(*metrics)
      @columns = metrics
    end

    # The metric must not be above `must` (measured over that of the server `over` if given).
    def at_most(must, stretch, metric, text, of: "rondo", over: nil)
      @goals << Goal.new(text: text, metric: metric, of: of, over: over, must: must, stretch: stretch,
                         at_least: false)
    end

    # The metric must not be below `must`.
    def at_least(must, stretch, metric, text, of: "rondo", over: nil)
      @goals << Goal.new(text: text, metric: metric, of: of, over: over, must: must, stretch: stretch,
                         at_least: true)
    end
  end

  # @return [Hash{String => Scenario}]
  def self.scenarios
    @scenarios ||= {}
  end

  # @param name [String] of a scenario, or the beginning of a group's names: "push"
  # @return [Array<String>]
  # @raise [KeyError]
  def self.scenarios_named(name)
    return [name] if scenarios.key?(name)

    group = scenarios.keys.select { |each| each.start_with?("#{name}_") }
    group.empty? ? raise(KeyError.new(receiver: scenarios, key: name)) : group
  end

  # Defines a scenario; the block runs inside it.
  def self.scenario(name, &block)
    scenarios[name] = Scenario.new(name).tap { |scenario| scenario.instance_eval(&block) }
  end
end
