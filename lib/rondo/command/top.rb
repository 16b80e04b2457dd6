# frozen_string_literal: true

# `rondo top`: a live view of a running server, by its control server. In a terminal a screen that is
# drawn anew each second, elsewhere a line each second. What is shown is worked out in
# top/figures.rb and drawn by top/screen.rb.
# SPDX-License-Identifier: MIT

require "rondo/command/running_server"
require "rondo/command/top/figures"
require "rondo/command/top/screen"
require "rondo/command/top/terminal"

module Rondo
  # Parses the words behind `top` and shows.
  # @api private
  class Top
    # @param arguments [Array<String>]
    # @param out [IO]
    # @param err [IO]
    # @param input [IO]
    def initialize(arguments, out: $stdout, err: $stderr, input: $stdin)
      @arguments = arguments
      @out = out
      @err = err
      @input = input
      @interval = 1.0
      @server = RunningServer.new
    end

    # @return [Integer] 0, or 1 with one line on standard error
    def run
      rest = parser.parse(@arguments)
      return @done if @done
      raise Error, "too many arguments: #{rest.join(" ")}" if rest.any?

      @screen = Screen.new(ascii: Encoding.default_external != Encoding::UTF_8, color: color?)
      @screen.sort = @sort if @sort
      show(sample)
      0
    rescue OptionParser::ParseError, Error => e
      CommandLine.fail_with(e, parser, @err)
    rescue Interrupt, Errno::EPIPE
      0
    end

    private

    def parser
      OptionParser.new do |options|
        options.banner = "Usage: rondo top [options]\n\n"
        options.require_exact = true
        @server.define(options)
        options.on("--interval SECONDS", Float, "time between two updates (1)") do |seconds|
          @interval = at_least(seconds)
        end
        options.on("--once", "print one line and end") { @once = true }
        options.on("--json", "print JSON instead of lines: an object a line") { @json = true }
        options.on("--sort COLUMN", "of workers: #{Screen::SORTS.keys.join(", ")} (worker)") do |name|
          @sort = column(name)
        end
        options.on("-h", "--help", "show this text") do
          @out.puts options.help
          @done = 0
        end
      end
    end

    # @see https://no-color.org
    def color?
      ENV["NO_COLOR"].to_s.empty? && ENV["TERM"] != "dumb"
    end

    def at_least(seconds)
      return seconds if seconds.between?(0.05, 3600)

      raise Error, "the interval must be between 0.05 and 3600 seconds"
    end

    def column(name)
      return name if Screen::SORTS.key?(name)

      raise Error, "--sort must be one of #{Screen::SORTS.keys.join(", ")}, not #{name}"
    end

    def show(first)
      if @once then print_line(first)
      elsif !@json && @out.tty? && @input.tty? then live(first)
      else loop { first = print_line(first) }
      end
    end

    # If the server was restarted, its address and token may have changed.
    # @return [Sample]
    def sample
      past = "&past=1" if @screen.incidents # 512 lines of the log
      response = @server.locate.client.get("/stats?watch=#{(@interval + 4).ceil.clamp(5, 60)}#{past}")
      if response.status == 403
        raise Error, "#{@server.url} refuses the statistics: the token is wrong or missing " \
                     "(-T, --control-token)"
      end
      raise Error, "#{@server.url} has no statistics: #{response.reason}" unless response.ok?

      Sample.new(response.body)
    end

    def print_line(before)
      sleep @interval
      after = sample
      figures = Figures.new(before, after)
      @out.puts @json ? JSON.generate(figures.to_h, ascii_only: true) : @screen.line(figures)
      @out.flush
      after
    end

    def live(first)
      figures = Figures.new(nil, first)
      Terminal.new(@input, @out).open do |terminal|
        loop do
          draw(terminal, figures)
          break if pause(terminal, figures) == :quit

          figures = look(figures) unless @paused
        end
      end
    end

    def look(figures)
      @note = nil
      Figures.new(figures.sample, sample).tap { |found| @screen.add(found) }
    rescue Error => e
      @note = "! #{Logger.escape(e.message)} (q quits)"
      figures
    end

    def draw(terminal, figures)
      width, height = terminal.size
      note = @note || ("paused: p goes on, q quits" if @paused)
      terminal.draw(@screen.lines(figures, width: width, height: height, note: note))
    end

    # Until the next look is due; a key, or another size, is answered at once.
    def pause(terminal, figures)
      due = now + @interval
      while (left = due - now).positive?
        case (event = terminal.wait(left))
        when :quit then return :quit
        when String then event.each_char { |key| press(key) }
        end
        draw(terminal, figures) if event
      end
    end

    def press(key)
      case key.downcase
      when "p", " " then @paused = !@paused
      when "s" then @screen.sort = Screen::SORTS.keys[(Screen::SORTS.keys.index(@screen.sort) + 1) % Screen::SORTS.size]
      when "r" then @screen.calls = !@screen.calls
      when "i" then @screen.incidents = !@screen.incidents
      end
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
