# frozen_string_literal: true

# The report of `rondo bench`: a document (document.rb) as a page, and as some lines for the terminal.
# SPDX-License-Identifier: MIT

require "rondo/command/bench/chart"
require "rondo/command/bench/figures"
require "rondo/command/bench/page"
require "rondo/command/bench/waits"

module Rondo
  class Bench
    # Reads a document and nothing else.
    class Report
      # @param document [Hash{Symbol => Object}] as {Document#to_h} makes it
      def initialize(document)
        @document = document
        @servers = document[:servers]
        @first, *@others = @servers
        @options = document[:options]
      end

      # @return [String] for the terminal
      def text
        [*summary, *@servers.flat_map { |server| server[:notes].map { |note| "#{server[:title]}: #{note}" } },
         "", "What to set", *@document[:advice].map { |piece| "- #{piece[:set]}. #{piece[:why]}" }, ""].join("\n")
      end

      # @return [String] the page
      def html
        page = Page.new("rondo bench: #{@options[:application] || @options[:url]}")
        introduce(page)
        busy(page)
        alone(page)
        mixed(page)
        memory(page)
        advice(page)
        notes(page)
        method_of(page)
        page.to_s
      end

      private

      def introduce(page)
        page.paragraph("#{@document[:taken_at]}; #{machine}", soft: true)
        page.paragraph("Asked for #{@options[:paths].join(", ")} with #{setting}.", soft: true)
        summary.each { |line| page.paragraph(line) }
      end

      def machine
        machine = @document[:machine]
        "#{machine[:processor]}, #{machine[:cpus]} CPUs; #{machine[:system]}; #{machine[:ruby]}"
      end

      def setting
        own = %i[threads workers environment].select { |name| @options.key?(name) }
        [*own.map { |name| "#{name} #{@options[name]}" }, Figures.count(@options[:connections], "connection"),
         "#{Figures.count(@options[:rounds], "round")} of #{Figures.number(@options[:seconds])} s for each " \
         "measurement"].join(", ")
      end

      # @return [Array<String>]
      def summary
        mine = @first[:medians]
        lines = ["#{name(@first)}: #{Figures.number(mine[:busy][:rps])} requests/s, #{cpu(mine[:busy])}p50 " \
                 "#{Figures.time(mine[:busy][:p50_us])}, p99 #{Figures.time(mine[:busy][:p99_us])}, fairness " \
                 "#{Figures.number(mine[:mixed][:fairness])}."]
        lines + @others.map { |other| compared(other) }
      end

      def cpu(busy)
        busy[:cpu_us] ? "#{Figures.time(busy[:cpu_us])} of CPU for each, " : ""
      end

      def compared(other)
        ratios = other[:ratios]
        parts = { "requests/s" => ratios[:busy][:rps], "CPU per request" => ratios[:busy][:cpu_us],
                  "p99" => ratios[:busy][:p99_us], "memory" => ratios[:memory][:pss] || ratios[:memory][:rss] }
        told = parts.compact.map { |what, ratio| "#{what} #{Figures.number(ratio)}" }
        "#{name(other)}, as multiples of #{@first[:title]}: #{told.join(", ")}; fairness #{fairness(other)}."
      end

      def fairness(server)
        Figures.number(server[:medians][:mixed][:fairness])
      end

      def name(server)
        [server[:title], server[:version]].compact.join(" ")
      end

      # A table of medians, with ratios where there are others.
      #
      # @param columns [Hash{Symbol => Array(String, Symbol)}] the figure: its title, and the kind of number
      def figures(page, phase, columns, ratios: [])
        ratios = [] if @others.empty?
        titles = columns.values.map(&:first) + ratios.map { |name| "#{columns[name].first} over #{@first[:title]}" }
        rows = @servers.map do |server|
          medians = server[:medians][phase]
          [name(server), *columns.map { |figure, (_, kind)| cell(medians[figure], kind) },
           *ratios.map { |figure| cell(server[:ratios][phase][figure], :number) }]
        end
        page.table(["", *titles], rows)
      end

      def cell(value, kind)
        Page::Cell.new(Figures.public_send(kind, value), value)
      end

      def bars(title, phase, figure, kind, note: nil)
        bars = @servers.map do |server|
          value = server[:medians][phase][figure] or return []
          least, most = server[:spans].dig(phase, figure)
          Chart::Bar.new(label: server[:title], value: value, text: Figures.public_send(kind, value), least: least,
                         most: most)
        end
        [Chart.bars(title, bars, note: note)]
      end

      def busy(page)
        page.heading("All connections busy")
        page.paragraph("#{@options[:connections]} connections, each with its next request as soon as it has an answer.")
        columns = { rps: ["requests/s", :number], cpu_us: ["CPU per request", :time], busy: ["CPUs used", :number],
                    p50_us: ["p50", :time], p99_us: ["p99", :time], longest_us: ["longest", :time] }
        figures(page, :busy, columns, ratios: %i[rps cpu_us p99_us])
        line = "The dark line: least to most of the rounds."
        page.plots(*bars("Requests per second (more is better)", :busy, :rps, :number, note: line),
                   *bars("CPU per request (less is better)", :busy, :cpu_us, :time, note: line), curves)
      end

      def curves
        curves = @servers.to_h { |server| [server[:title], middle_curve(server)] }
        Waits.curves("Waits: so many requests waited no longer", curves)
      end

      def middle_curve(server)
        server[:rounds].map { |round| round[:busy][:curve_us] }.transpose.map { |values| Figures.median(values) }
      end

      def alone(page)
        page.heading("One request at a time")
        page.paragraph("One connection: no request waits for another one. The difference between its time and its " \
                       "CPU is what the application waits for, and the way through the kernel and the client.")
        columns = { mean_us: ["time of a request (mean)", :time], cpu_us: ["CPU per request", :time],
                    p50_us: ["p50", :time], p99_us: ["p99", :time], rps: ["requests/s", :number] }
        figures(page, :alone, columns, ratios: %i[mean_us cpu_us])
      end

      def mixed(page)
        kinds = Rounds.connections(:mixed, @options[:connections])
        page.heading("Fairness")
        page.paragraph("#{kinds[:kept]} connections send one request at a time, #{kinds[:piped]} have " \
                       "#{Rounds::DEPTH} on their way, and #{kinds[:fresh]} connect anew for each request. Fairness: " \
                       "the 99th percentile of the connection that waits longest, over the median wait; without " \
                       "those that have #{Rounds::DEPTH} on their way. 1 would be equal waits.")
        columns = { fairness: ["fairness", :number], p50_us: ["p50", :time], p99_us: ["p99", :time],
                    longest_us: ["longest", :time], rps: ["requests/s", :number] }
        figures(page, :mixed, columns, ratios: %i[fairness])
        last = @servers.to_h { |server| [server[:title], server[:rounds].last[:mixed][:connections]] }
        page.plots(*bars("Fairness (less is better)", :mixed, :fairness, :number),
                   Waits.connections("p99 of each connection, last round", last))
      end

      def memory(page)
        return unless @servers.any? { |server| server[:medians][:memory].any? }

        page.heading("Memory")
        page.paragraph("Of all processes of a server, at the end of a round. In PSS a page that processes share is " \
                       "divided by them.")
        figures(page, :memory, { rss: ["RSS", :mebibytes], pss: ["PSS", :mebibytes] }, ratios: %i[pss])
        page.plots(*bars("Memory, PSS (less is better)", :memory, :pss, :mebibytes))
      end

      def advice(page)
        page.heading("What to set")
        page.terms(@document[:advice].map { |piece| [piece[:set], piece[:why]] })
      end

      def notes(page)
        told = @servers.flat_map { |server| server[:notes].map { |note| [name(server), note] } }
        return if told.empty?

        page.heading("What else happened")
        page.terms(told)
      end

      def method_of(page)
        page.heading("How this was measured")
        client = @servers.map { |server| "#{server[:title]} #{Figures.number(server[:medians][:busy][:client_busy])}" }
        page.paragraph("The servers took turns in each round. Figures are medians of the rounds; ratios are taken " \
                       "within a round, and then the median of them. CPU is user and system time of all processes of " \
                       "the server. The client is one thread in C on the same machine; of one CPU it used: " \
                       "#{client.join(", ")}. Waits count from the request (of a new connection: from connect) to " \
                       "the end of the answer; they are right to 1.6 %.")
        page.paragraph("A closed loop says what a server does under full load. It does not say how long users wait " \
                       "at the load that you have.")
      end
    end
  end
end
