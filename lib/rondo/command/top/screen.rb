# frozen_string_literal: true

# Draws the figures of figures.rb: a screen of lines for a terminal, or one plain line. It knows neither the server nor
# the terminal.
# SPDX-License-Identifier: MIT

require "rondo/command/top/figures"

module Rondo
  class Top
    # Lines of text from figures.
    class Screen
      # Samples that the bars over time remember.
      HISTORY = 240
      LEVELS = "▁▂▃▄▅▆▇█"
      PLAIN = ["▁▂▃▄▅▆▇█░µ·▾", "__.-=+**-u-*"].freeze
      # What is left out first where the terminal is narrow.
      SPARE = ["gen", "time p50", "wait p50", "pid", "memory", "time p99", "conns", "oldest", "wait p99", "req/s",
               "queue"]
              .map(&:to_sym).freeze
      COLUMNS = { worker: 6, pid: 7, gen: 4, state: 8, busy: 14, oldest: 7, queue: 6, "req/s": 8, "wait p50": 8,
                  "wait p99": 8, "time p50": 8, "time p99": 8, conns: 7, memory: 7 }.freeze
      # Of a line, by what it shows: SGR parameters of ECMA-48.
      COLORS = { headline: "1", titles: "7", stuck: "1;31", slow: "33", other: "33", waits: "33", error: "31",
                 keys: "2" }.freeze
      # What workers can be sorted by: the largest first, but by their numbers from the smallest on.
      SORTS = {
        "worker" => :index.to_proc, "busy" => ->(row) { -row.busy }, "oldest" => ->(row) { -(row.oldest_us || 0) },
        "queue" => ->(row) { -row.queue }, "req/s" => ->(row) { -(row.rate || 0) },
        "wait p99" => ->(row) { -(row.wait_p99 || 0) }, "time p99" => ->(row) { -(row.time_p99 || 0) },
        "conns" => ->(row) { -row.connections }, "memory" => ->(row) { -row.rss_bytes }
      }.freeze
      # Lines of the log that are shown at most.
      LOG_LINES = 8
      WAITING = %w[thread turn].freeze
      # A call that lasts this long is shown as slow.
      SLOW_US = 5_000_000
      LEFT = %i[worker state busy].freeze

      # @return [String] a key of {SORTS}
      attr_accessor :sort
      # @return [Boolean] whether requests are shown
      attr_accessor :calls
      # @return [Boolean] whether incidents are
      attr_accessor :incidents

      # @param ascii [Boolean] for terminals without UTF-8
      # @param color [Boolean]
      def initialize(ascii: false, color: false)
        @ascii = ascii
        @color = color
        @rates = []
        @waits = []
        @busy = []
        @sort = "worker"
        @calls = true
        @incidents = false
      end

      # Remembers figures for the bars over time.
      # @param figures [Figures]
      # @return [void]
      def add(figures)
        total = figures.total
        remember(@rates, total.rate)
        remember(@waits, total.wait_p99)
        remember(@busy, total.busy)
      end

      # @param figures [Figures]
      # @param width [Integer]
      # @param height [Integer]
      # @param note [String, nil] in place of the line with the keys
      # @return [Array<String>] at most `height` lines of at most `width` characters
      def lines(figures, width:, height:, note: nil)
        room = [height - 1, 0].max
        first, *rest = header(figures, width)
        @shown = columns(width)
        rows = figures.rows.sort_by(&SORTS.fetch(@sort)).map { |row| [worker(row), look_of(row)] }
        all = [[first, :headline], *rest, "", [titles, :titles], *rows]
        all.concat(calls_of(figures, room - all.size - (@incidents ? LOG_LINES : 0))) if @calls
        all.concat(incidents_of(figures, room - all.size)) if @incidents
        all = [*all.first(room), note || [keys, :keys]]
        all.last(height).map { |line, look| painted(plain(line)[0, width], look) }
      end

      # One line for a log.
      # @param figures [Figures]
      # @param now [Time]
      # @return [String]
      def line(figures, now: Time.now)
        total = figures.total
        plain("#{now.strftime("%H:%M:%S")} workers=#{figures.ready}/#{figures.rows.size} " \
              "busy=#{total.busy}/#{total.max_threads} oldest=#{tight(total.oldest_us)} queue=#{total.queue} " \
              "accept_queue=#{figures.sample.accept_queue || "-"} rps=#{rate(total.rate).delete(",")} " \
              "wait_p50=#{tight(total.wait_p50)} wait_p99=#{tight(total.wait_p99)} " \
              "time_p50=#{tight(total.time_p50)} time_p99=#{tight(total.time_p99)} " \
              "connections=#{total.connections} memory=#{bytes(total.rss_bytes)}#{tasks_of(total)}#{tls_of(figures)}")
      end

      # @param us [Integer, nil]
      # @return [String] "850 µs", "1.2 ms", "12 ms", "1.5 s"
      def self.duration(us)
        return "-" unless us
        return "#{us} µs" if us < 1000

        number, unit = us < 1_000_000 ? [us / 1000.0, "ms"] : [us / 1_000_000.0, "s"]
        "#{number < 10 ? number.round(1) : number.round} #{unit}"
      end

      # @param values [Array<Numeric>]
      # @param width [Integer]
      # @param most [Numeric, nil] what a full bar means; the greatest of the values without it
      # @return [String] the last of them as a bar each
      def self.bars(values, width, most = nil)
        shown = values.last(width)
        most = [most || 0, *shown].max.to_f
        shown.map { |value| value.zero? ? " " : LEVELS[[(value * LEVELS.size / most).ceil, 1].max - 1] }.join
      end

      # @return [String] how much of `most` is used
      def self.gauge(count, most, width)
        full = most.zero? ? 0 : [(count * width / most.to_f).ceil, width].min
        "#{"█" * full}#{"░" * (width - full)}"
      end

      private

      def remember(values, value)
        values << (value || 0)
        values.shift if values.size > HISTORY
      end

      def header(figures, width)
        total = figures.total
        bars = [width - 46, 0].max
        [headline(figures),
         over_time("requests/s", rate(total.rate), @rates, bars),
         over_time("busy threads", "#{total.busy} of #{total.max_threads}", @busy, bars, total.max_threads),
         over_time("wait p99", Screen.duration(total.wait_p99), @waits, bars),
         "queue #{total.queue} (kernel #{figures.sample.accept_queue || "-"}) · " \
         "wait p50 #{Screen.duration(total.wait_p50)} · " \
         "time p50 #{Screen.duration(total.time_p50)} p99 #{Screen.duration(total.time_p99)} · " \
         "connections #{total.connections} · memory #{bytes(total.rss_bytes)}#{files(total)}",
         *tasks(total), *secure(figures)]
      end

      # One line, if the application has tasks or timers.
      def tasks(total)
        return [] unless tasks?(total)

        ["tasks: running #{total.tasks_running} · queued #{total.tasks_waiting} · " \
         "late by #{Screen.duration(total.late_us)} · #{rate(total.task_rate)}/s · timers #{total.timers}"]
      end

      def tasks?(total)
        [total.tasks_running, total.tasks_waiting, total.timers, total.task_rate || 0].any?(&:positive?)
      end

      # One line, if anything is served with TLS.
      def secure(figures)
        total, first = figures.total, figures.sample.next_to_expire
        return [] unless first

        ["TLS: connections #{total.tls_connections} · handshakes #{rate(total.full_rate)}/s " \
         "resumed #{rate(total.resumed_rate)}/s failed #{rate(total.failed_rate)}/s · " \
         "#{first["names"].first}: #{first["days_left"]} days left"]
      end

      def tasks_of(total)
        return unless tasks?(total)

        " tasks_running=#{total.tasks_running} tasks_queued=#{total.tasks_waiting} " \
          "tasks_late=#{tight(total.late_us)} tps=#{rate(total.task_rate).delete(",")} timers=#{total.timers}"
      end

      def tls_of(figures)
        first = figures.sample.next_to_expire or return
        " tls=#{figures.total.tls_connections} tls_failed=#{rate(figures.total.failed_rate).delete(",")} " \
          "certificate_days=#{first["days_left"]}"
      end

      def files(total)
        " · files #{rate(total.file_rate)}/s" if total.file_rate&.positive?
      end

      def headline(figures)
        sample = figures.sample
        mode = sample.cluster? ? "#{figures.ready} of #{figures.rows.size} workers ready" : figures.rows.first&.state
        "Rondo #{sample.version} · #{mode} · up #{age(Time.now - sample.started_at)}"
      end

      def over_time(name, value, values, width, most = nil)
        format("%-14<name>s %12<value>s  %<bars>s", name: name, value: value, bars: Screen.bars(values, width, most))
      end

      # @return [Array<Symbol>] the columns that the terminal has room for
      def columns(width)
        shown = COLUMNS.keys
        SPARE.each do |name|
          break if shown.sum { |one| COLUMNS[one] + 1 } - 1 <= width

          shown -= [name] unless name.to_s == @sort
        end
        shown
      end

      def titles
        cells(COLUMNS.keys.map { |name| name.to_s == @sort && @sort != "worker" ? "#{name}▾" : name })
      end

      def keys
        "q quits · p pauses · s sorts by #{SORTS.keys[(SORTS.keys.index(@sort) + 1) % SORTS.size]} · " \
          "r #{@calls ? "hides" : "shows"} requests · i #{@incidents ? "hides" : "shows"} incidents"
      end

      # The oldest requests, as many as there is room for; the last line says how many more there are.
      def calls_of(figures, room)
        all = figures.sample.calls
        return [] if all.empty? || room < 2

        shown = all.first(room - (all.size < room ? 1 : 2))
        lines = shown.map { |call| [call_line(call), look_of_call(call)] }
        lines << "and #{all.size - shown.size} more" if shown.size < all.size
        ["", *lines]
      end

      def call_line(call)
        client = " · #{call.client}" if call.client
        age = Screen.duration(call.age_us).rjust(8)
        "#{age}  worker #{call.worker}  #{call.request} · #{call.words}#{client}"
      end

      def look_of_call(call)
        return :stuck if call.state == "hung"
        return :waits if WAITING.include?(call.state)

        :slow if call.age_us >= SLOW_US
      end

      # The counters, and the last lines of the log that are more than news.
      def incidents_of(figures, room)
        total = figures.total
        lines = figures.sample.log.select { |line| line["level"] != "info" || line["text"].to_s.start_with?("Refused") }
        recent = lines.last((room - 2).clamp(0, LOG_LINES - 2))
        ["", "incidents: refused #{total.refused} · 503 in the queue #{total.dropped} · 503 inside #{total.timed_out}",
         *recent.map { |line| [log_line(line), line["level"] == "error" ? :error : nil] }]
      end

      def log_line(line)
        "  #{line["text"].to_s.lines.first.to_s.chomp}"
      end

      def worker(row)
        busy = "#{Screen.gauge(row.busy, row.max_threads, 8)} #{row.busy}/#{row.max_threads}"
        oldest = Screen.duration(row.oldest_us)
        cells([row.index, row.pid, row.generation, row.state, busy, oldest, row.queue, rate(row.rate),
               *[row.wait_p50, row.wait_p99, row.time_p50, row.time_p99].map { |us| Screen.duration(us) },
               row.connections, bytes(row.rss_bytes)])
      end

      def look_of(row)
        return row.state == "stuck" ? :stuck : :other unless row.state == "ready"

        :slow if (row.oldest_us || 0) >= SLOW_US
      end

      def painted(line, look)
        @color && look ? "\e[#{COLORS.fetch(look)}m#{line}\e[0m" : line
      end

      # @param values [Array] of all columns
      def cells(values)
        COLUMNS.keys.zip(values).to_h.slice(*@shown).map do |name, value|
          text = value.to_s
          LEFT.include?(name) ? text.ljust(COLUMNS[name]) : text.rjust(COLUMNS[name])
        end.join(" ").rstrip
      end

      def rate(number)
        return "-" unless number

        whole = number >= 10 ? number.round : number.round(1)
        whole.to_s.gsub(/(\d)(?=(\d{3})+\z)/, "\\1,")
      end

      def tight(us)
        Screen.duration(us).delete(" ")
      end

      def bytes(number)
        return "-" if number.zero?

        number < 1 << 30 ? "#{(number / 1_048_576.0).round}M" : "#{(number / 1_073_741_824.0).round(1)}G"
      end

      def age(seconds)
        seconds = [seconds.to_i, 0].max
        return "#{seconds} s" if seconds < 60
        return "#{seconds / 60} min" if seconds < 3600

        return "#{seconds / 3600} h #{seconds / 60 % 60} min" if seconds < 86_400

        "#{seconds / 86_400} d #{seconds / 3600 % 24} h"
      end

      # Words of the server's clients and certificates, or of a program that only claims to be a control server, are no
      # orders for the terminal.
      def plain(line)
        line = Logger.quote(line).tr("\t", " ")
        @ascii ? line.tr(*PLAIN) : line
      end
    end
  end
end
