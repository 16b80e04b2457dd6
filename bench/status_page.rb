# frozen_string_literal: true

# Measures what the status page costs: `ruby bench/status_page.rb [--pairs N] [--seconds S] [--pages N]`.
#
# - CPU time of the server per plain request while pages are open, over that without. Both are measured in the same
#   process, in pairs of short sections, and every second pair begins with the other one, because the machine's
#   speed drifts by more than the pages cost.
# - The bytes of the page, and the time until a browser first paints it.
# SPDX-License-Identifier: MIT

require "json"
require "optparse"
require "socket"
require "timeout"
require_relative "measure"
require_relative "report"
require_relative "../test/support/browser"

module Bench
  # The measurements and their table.
  class StatusPageRun
    CONNECTIONS = 64
    PAINTS = 11
    FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"

    # Readers of the page's stream, on the client's CPU.
    class Pages
      def initialize(port, count)
        @sockets = Array.new(count) do
          TCPSocket.new("127.0.0.1", port).tap do |socket|
            socket.write("GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
          end
        end
        @threads = @sockets.map { |socket| Thread.new { nil while socket.readpartial(65_536) } }
        @threads.each { |thread| thread.report_on_exception = false }
      end

      # @return [void]
      def close
        @threads.each(&:kill).each(&:join)
        @sockets.each(&:close)
      end
    end

    def initialize(arguments)
      @pairs, @seconds, @pages = 41, 2.0, 5
      OptionParser.new do |options|
        options.on("--pairs N", Integer, "of sections (41)") { |count| @pairs = count }
        options.on("--seconds S", Float, "of a section (2)") { |seconds| @seconds = seconds }
        options.on("--pages N", Integer, "that are open (5)") { |count| @pages = count }
      end.parse!(arguments)
    end

    # @return [void]
    def call
      Programs.build
      Programs.compile_rondo
      system("taskset", "-cp", CLIENT_CPU.to_s, Process.pid.to_s, out: File::NULL)
      serve do
        show_cost
        show_paint
      end
    end

    private

    def serve
      @port, @control = Array.new(2) { Addrinfo.tcp("127.0.0.1", 0).bind { |socket| socket.local_address.ip_port } }
      @pid = spawn("taskset", "-c", SERVER_CPU.to_s, Gem.ruby, "-I", File.join(ROOT, "lib"),
                   File.join(ROOT, "exe/rondo"), "-q", "-t", "1", "-b", "tcp://127.0.0.1:#{@port}",
                   "--control-url", "tcp://127.0.0.1:#{@control}", "--control-token", "none",
                   File.join(ROOT, "bench/apps/hello.ru"))
      wait_for(@port)
      yield
    ensure
      Process.kill("KILL", @pid) && Process.wait(@pid) if @pid
    end

    def wait_for(port)
      Timeout.timeout(60) do
        TCPSocket.new("127.0.0.1", port).close
      rescue Errno::ECONNREFUSED
        sleep 0.05
        retry
      end
    end

    # ---- CPU time ----

    def show_cost
      section(0)
      pairs = Array.new(@pairs) do |pair|
        order = [0, @pages].rotate(pair)
        order.to_h { |pages| [pages, section(pages)] }
      end
      ratios = pairs.map { |pair| pair[@pages] / pair[0] }.sort
      error = Math.sqrt(Math::PI / 2) * deviation(ratios) / Math.sqrt(ratios.size) # of a median
      puts format("CPU time of a plain request with %<pages>d open pages over without: %<median>.4f ± %<error>.4f " \
                  "(median of %<pairs>d pairs and its standard error; quartiles %<low>.3f and %<high>.3f)",
                  pages: @pages, pairs: @pairs, median: Statistics.median(ratios), error: error,
                  low: ratios[ratios.size / 4], high: ratios[ratios.size * 3 / 4])
    end

    # @return [Float] µs of CPU per request
    def section(pages)
      open = Pages.new(@control, pages)
      sleep 0.3 # until the worker has seen that somebody looks
      before = Processes.cpu_us(@pid)
      said = IO.popen([Programs.path("client"), "--json", "--pin", CLIENT_CPU.to_s, "-c", CONNECTIONS.to_s,
                       "-d", @seconds.to_s, "127.0.0.1:#{@port}/"], &:read)
      (Processes.cpu_us(@pid) - before) / JSON.parse(said)["requests"]
    ensure
      open&.close
    end

    def deviation(values)
      mean = values.sum / values.size
      Math.sqrt(values.sum { |value| (value - mean)**2 } / (values.size - 1))
    end

    # ---- the browser ----

    def show_paint
      url = "http://127.0.0.1:#{@control}/"
      puts "Bytes of the page: #{IO.popen(["curl", "-s", url], &:read).bytesize}"
      return puts("First paint: chromium is not installed") unless Chromium.find

      browser = Chromium.new
      times = Array.new(PAINTS + 1) do
        page = browser.open(url)
        page.wait_for(FIRST_PAINT).tap { page.close }
      end.drop(1)
      browser.stop
      puts format("First contentful paint in Chromium: %<median>d ms (median of %<count>d, %<least>d to %<most>d)",
                  median: Statistics.median(times), count: times.size, least: times.min, most: times.max)
    end
  end
end

Bench::StatusPageRun.new(ARGV).call if $PROGRAM_NAME == __FILE__
