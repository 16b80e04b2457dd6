# frozen_string_literal: true

# What a scenario is: an application, the requests, how many connections, and which ratio of it
# must reach what. The scenarios themselves are the files of bench/scenarios, a few lines each;
# measure.rb carries them out, report.rb prints them.
# SPDX-License-Identifier: MIT

module Bench
  # One line of the table of goals. The figure is `metric` of Rondo, divided by that of the server
  # `over` in the same round when there is one; of several, by the better one's.
  Goal = Struct.new(:text, :metric, :over, :must, :stretch, :at_least, keyword_init: true) do
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
    # How `run.rb` measures it: :load (the client for a while), :idle, :allocations, or as push.rb and files.rb say.
    KINDS = %i[load idle allocations
               echo chat broadcast bystander idle_sockets stalled patterns
               hot cold fetch stuck slow].freeze

    # How a file can be answered: as it lies in a folder of the server's, or as apps/files.ru says.
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

    # Requests per second that would be perfect; the metric `of_ideal` is the share of them.
    def ideal(ideal = @ideal)
      @ideal = ideal
    end

    # Rounds, when nobody asks for another number of them.
    def rounds(rounds = @rounds || 5)
      @rounds = rounds
    end

    # Seconds after which no further round begins; without end if never called.
    def within(seconds = @within || Float::INFINITY)
      @within = seconds
    end

    # Whether each round has a new process: what the one before left in memory would help this one.
    def fresh(fresh = @fresh)
      @fresh = fresh
    end

    # What is asked for: where idle WebSockets are opened, or the file.
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

    # Servers whose applications compute by themselves are stopped while others are measured.
    def restless(restless = @restless)
      @restless = restless
    end

    # How many times the usual seconds one measurement takes.
    def lasting(times = @lasting || 1)
      @lasting = times
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
    def at_most(must, stretch, metric, text, over: nil)
      @goals << Goal.new(text: text, metric: metric, over: over, must: must, stretch: stretch,
                         at_least: false)
    end

    # The metric must not be below `must`.
    def at_least(must, stretch, metric, text, over: nil)
      @goals << Goal.new(text: text, metric: metric, over: over, must: must, stretch: stretch,
                         at_least: true)
    end
  end

  # @return [Hash{String => Scenario}]
  def self.scenarios
    @scenarios ||= {}
  end

  # @param name [String] of a scenario, or what the names of a group begin with: "push"
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
