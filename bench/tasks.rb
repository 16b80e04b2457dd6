# frozen_string_literal: true

# Measures tasks and timers: `ruby bench/tasks.rb [--rounds N] [--seconds S] [--timers N]`.
#
# - Tasks per second with four threads, and CPU time per task, beside iodine 0.7.60. The ratios are medians of those
#   within a round.
# - How late timers of one second are that are spread evenly over it, idle and beside requests (client.c).
# - The 99th percentile of requests beside 100,000 queued tasks that compute for 0.1 ms each, with four threads.
#
# Lateness and percentiles mean something on a quiet machine only.
# SPDX-License-Identifier: MIT

require "json"
require "net/http"
require "optparse"
require "socket"
require_relative "measure"

module Bench
  # The measurements and their tables.
  class TasksRun
    THREADS = 4
    COMMON = <<~RUBY
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      COUNT = ARGV.first.to_i
      def tell(since, used)
        puts format('{"seconds": %f, "cpu": %f}', now - since, cpu - used)
        $stdout.flush
        exit!(0)
      end
      # Asks for all of them in a task, and the last one tells.
      def measure(owner)
        left, since, used = COUNT, now, cpu
        COUNT.times { owner.run { tell(since, used) if (left -= 1).zero? } }
      end
    RUBY
    RONDO = <<~RUBY.freeze
      #{COMMON}
      require "rondo"
      server = Rondo::Server.new(->(_env) { [200, {}, []] }, min_threads: #{THREADS}, max_threads: #{THREADS},
                                                             max_tasks: COUNT + 1)
      server.listen("tcp://127.0.0.1:0")
      Rondo.run { measure(Rondo) }
      server.run
    RUBY
    IODINE = <<~RUBY.freeze
      #{COMMON}
      require "iodine"
      Iodine.workers, Iodine.threads, Iodine.verbosity = 1, #{THREADS}, 2
      Iodine.run { measure(Iodine) }
      Iodine.start
    RUBY
    # /timers?COUNT begins timers, /late tells of them and forgets, /queue?COUNT queues tasks.
    APPLICATION = <<~RUBY.freeze
      require "rondo"
      require "json"
      LATE = []
      def now_ms = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)
      def timer
        due = now_ms + 1000
        Rondo.run_every(1000) do
          began = now_ms
          LATE << (began - due)
          due = began + 1000
        end
      end
      def compute
        ends = now_ms + 0.1
        nil while now_ms < ends
      end
      def late
        all = LATE.dup.sort
        LATE.clear
        JSON.generate(count: all.size, p50: all[all.size / 2], p99: all[all.size * 99 / 100], max: all.last)
      end
      application = lambda do |env|
        count = env["QUERY_STRING"].to_i
        text = case env["PATH_INFO"]
               when "/timers" then count.times { |n| Rondo.run_after(n * 1000.0 / count) { timer } }.to_s
               when "/queue" then count.times { Rondo.run { compute } }.to_s
               when "/late" then late
               else "hello"
               end
        [200, { "content-type" => "text/plain" }, [text]]
      end
      server = Rondo::Server.new(application, min_threads: #{THREADS}, max_threads: #{THREADS}, max_tasks: 1_000_000)
      server.listen("tcp://127.0.0.1:\#{ARGV.first}")
      server.run
    RUBY

    def initialize(arguments)
      @rounds, @seconds, @timers, @tasks = 5, 5.0, 10_000, 200_000
      OptionParser.new do |options|
        options.on("--rounds N", Integer, "of tasks per second (5)") { |count| @rounds = count }
        options.on("--seconds S", Float, "of timers (5)") { |seconds| @seconds = seconds }
        options.on("--timers N", Integer, "of one second (10000)") { |count| @timers = count }
        options.on("--tasks N", Integer, "in a round (200000)") { |count| @tasks = count }
      end.parse!(arguments)
    end

    # @return [void]
    def call
      Programs.build
      Programs.compile_rondo
      show_tasks
      serve { show_timers }
      serve { show_requests }
    end

    private

    # ---- tasks per second ----

    def show_tasks
      rounds = Array.new(@rounds) { { rondo: tasks(RONDO, {}), iodine: iodine } }
      puts "| server | tasks per second | µs of CPU per task |", "|---|---|---|"
      %i[rondo iodine].each do |name|
        found = rounds.filter_map { |round| round[name] }
        next if found.empty?

        puts format("| %<name>s | %<rate>d | %<cpu>.2f |", name: name, rate: middle(found.map { |one| one[:rate] }),
                                                           cpu: middle(found.map { |one| one[:cpu_us] }))
      end
      %i[rate cpu_us].each { |key| show_ratio(rounds, key) }
    end

    def show_ratio(rounds, key)
      ratios = rounds.filter_map { |round| round[:iodine] && (round[:rondo][key] / round[:iodine][key]) }
      puts format("Rondo over iodine, %<key>s: %<ratio>.2f", key: key, ratio: middle(ratios)) if ratios.any?
    end

    def iodine
      tasks(IODINE, Peers.environment) if Peers.version("iodine", "~> 0.7.0")
    end

    def tasks(program, environment)
      said = IO.popen([environment, Gem.ruby, "-I", File.join(ROOT, "lib"), "-e", program, @tasks.to_s], &:read)
      found = JSON.parse(said.lines.last, symbolize_names: true)
      { rate: @tasks / found[:seconds], cpu_us: found[:cpu] * 1e6 / @tasks }
    end

    def middle(values)
      values.sort[values.size / 2]
    end

    # ---- timers, and requests beside tasks ----

    def serve
      @port = Addrinfo.tcp("127.0.0.1", 0).bind { |socket| socket.local_address.ip_port }
      pid = spawn("taskset", "-c", SERVER_CPU.to_s, Gem.ruby, "-I", File.join(ROOT, "lib"), "-e", APPLICATION,
                  @port.to_s)
      yield
    ensure
      Process.kill("KILL", pid) && Process.wait(pid) if pid
    end

    def ask(path)
      tries = 0
      begin
        Net::HTTP.get(URI("http://127.0.0.1:#{@port}#{path}"))
      rescue Errno::ECONNREFUSED
        raise if (tries += 1) > 600

        sleep 0.05
        retry
      end
    end

    def show_timers
      ask("/timers?#{@timers}")
      sleep 2.5
      puts "", "| #{@timers} timers of 1 s | runs | p50 ms | p99 ms | most ms |", "|---|---|---|---|---|"
      show_late("idle") { sleep @seconds }
      show_late("beside requests") { @beside = load(@seconds) }
      puts "", "There were #{(@beside["requests"] / @seconds).round} requests a second beside them."
    end

    def show_late(name)
      ask("/late")
      yield
      late = JSON.parse(ask("/late"))
      puts format("| %<name>s | %<count>d | %<p50>.2f | %<p99>.2f | %<max>.2f |",
                  name: name, **late.transform_keys(&:to_sym))
    end

    def load(seconds)
      JSON.parse(IO.popen([Programs.path("client"), "--json", "--pin", CLIENT_CPU.to_s, "-c", "8", "-d", seconds.to_s,
                           "127.0.0.1:#{@port}/"], &:read))
    end

    def show_requests
      alone = load(@seconds)
      ask("/queue?100000")
      beside = load(@seconds)
      puts "", "| requests | a second | p50 µs | p99 µs |", "|---|---|---|---|"
      { "alone" => alone, "beside queued tasks" => beside }.each do |name, found|
        puts "| #{name} | #{(found["requests"] / @seconds).round} | #{found["p50_us"]} | #{found["p99_us"]} |"
      end
    end
  end
end

Bench::TasksRun.new(ARGV).call if $PROGRAM_NAME == __FILE__
