# frozen_string_literal: true

# One run of asking.rb, in a process and a Ruby of its own: many Net::HTTP requests to a backend, in one of several
# ways. Prints a line of JSON.
#
#   neverblock_client.rb WAY PORT once REQUESTS        all at once: requests/s, CPU for each, the most memory
#   neverblock_client.rb WAY PORT alone COUNT SECONDS  COUNT at any time, for so long: requests/s
#   neverblock_client.rb WAY PORT beside COUNT SECONDS the same beside a thread that computes
# SPDX-License-Identifier: MIT

require "json"
require "net/http"

# The ways to ask.
module Ways
  POOL = 50
  LIBRARIES = { "fibers" => "rondo", "async" => "async" }.freeze

  def self.threads(requests, &ask)
    Array.new(requests) { Thread.new(&ask) }.each(&:join)
  end

  def self.pool(requests, &ask)
    left = Queue.new
    requests.times { left << true }
    left.close
    Array.new(POOL) { Thread.new { ask.call while left.pop } }.each(&:join)
  end

  def self.fibers(requests, &ask)
    Rondo.fibers(limit: requests) { |all| requests.times { all.start(&ask) } }
  end

  def self.async(requests, &ask)
    Async { |task| Array.new(requests) { task.async { ask.call } }.each(&:wait) }
  end
end

# Asks, and counts the answers.
class Asker
  def initialize(way, port)
    @way = way
    @url = URI("http://127.0.0.1:#{port}/")
    require Ways::LIBRARIES[way] if Ways::LIBRARIES.key?(way)
    ask # what is loaded with the first request is loaded
    @answers = 0
    GC.start
  end

  # All at once.
  def once(count)
    began, used = now, cpu
    Ways.public_send(@way, count) { ask }
    took, used = now - began, cpu - used
    raise "#{@answers} answers of #{count}" unless @answers == count

    tell(rate: count / took, cpu_us: used * 1e6 / count, cpu_seconds: used, most_kb: most_kb)
  end

  # So many at any time. Who computes must also look at the clock: nobody else may get the chance.
  def for_a_while(count, seconds, computes:)
    began = now
    Thread.new do
      computes ? nil : sleep(0.01) while now - began < seconds
      tell(rate: @answers / (now - began))
    end
    Ways.public_send(@way, count) { loop { ask } }
  end

  private

  def ask
    raise "not the answer" unless Net::HTTP.get_response(@url).body == "ok"

    @answers = @answers.to_i + 1
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def cpu
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  end

  def most_kb
    File.read("/proc/self/status")[/VmHWM:\s+(\d+)/, 1].to_i
  end

  # The others are in the middle of their requests.
  def tell(figures)
    $stdout.puts JSON.generate(figures)
    $stdout.flush
    exit!(0)
  end
end

way, port, kind, count, seconds = ARGV
asker = Asker.new(way, port)
kind == "once" ? asker.once(count.to_i) : asker.for_a_while(count.to_i, seconds.to_f, computes: kind == "beside")
