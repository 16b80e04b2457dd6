# frozen_string_literal: true

# NeverBlock's table, as a client: many Net::HTTP requests to a backend that takes its time, by threads, by a pool of
# threads, by Async where its gem is installed, and by Rondo.fibers. Each run is a process of its own, and says requests
# a second, CPU microseconds for a request, and the most memory it had.
#
#   ruby bench/neverblock.rb [--requests 1000] [--rounds 5] [--delays 0,10,50,100,500] [--modes threads,fibers]
# SPDX-License-Identifier: MIT

require "json"
require "net/http"
require "optparse"
$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))

# The backend: answers after so many milliseconds, in fibers of its own.
module SlowBackend
  ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

  def self.start(delay_ms)
    listener = TCPServer.new("127.0.0.1", 0)
    listener.listen(4096)
    pid = fork do
      require "rondo"
      serve(listener, delay_ms / 1000.0)
    end
    port = listener.addr[1]
    listener.close
    [pid, port]
  end

  def self.serve(listener, delay)
    Rondo.fibers(limit: 10_000) do |all|
      loop do
        client = listener.accept
        all.start { answer(client, delay) }
      end
    end
  end

  def self.answer(client, delay)
    client.gets("\r\n\r\n")
    sleep delay if delay.positive?
    client.write ANSWER
    client.close
  end
end

# The ways to ask.
module Ways
  POOL = 50

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
    require "rondo"
    Rondo.fibers(limit: requests) { |all| requests.times { all.start(&ask) } }
  end

  def self.async(requests, &ask)
    require "async"
    Async { |task| Array.new(requests) { task.async { ask.call } }.each(&:wait) }
  end

  def self.async?
    Gem::Specification.any? { |spec| spec.name == "async" }
  end
end

# One run in a process of its own.
class Run
  def initialize(mode, requests, port)
    @mode = mode
    @requests = requests
    @uri = URI("http://127.0.0.1:#{port}/")
  end

  # @return [Hash] rate, cpu_us, rss_kb
  def result
    reader, writer = IO.pipe
    pid = fork { writer << JSON.generate(measure) }
    writer.close
    text = reader.read
    Process.wait(pid)
    abort "#{@mode} failed" if text.empty?
    JSON.parse(text, symbolize_names: true)
  end

  private

  def measure
    require "rondo" if @mode == "fibers"
    require "async" if @mode == "async"
    answers = 0
    wall = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    Ways.public_send(@mode, @requests) { answers += 1 if Net::HTTP.get_response(@uri).body == "ok" }
    wall = Process.clock_gettime(Process::CLOCK_MONOTONIC) - wall
    cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu
    raise "#{answers} answers of #{@requests}" unless answers == @requests

    { rate: @requests / wall, cpu_us: cpu * 1e6 / @requests,
      rss_kb: File.read("/proc/self/status")[/VmHWM:\s+(\d+)/, 1].to_i }
  end
end

options = { requests: 1000, rounds: 5, delays: [0, 10, 50, 100, 500],
            modes: %w[threads pool fibers] + (Ways.async? ? %w[async] : []) }
OptionParser.new do |parser|
  parser.on("--requests N", Integer) { |number| options[:requests] = number }
  parser.on("--rounds N", Integer) { |number| options[:rounds] = number }
  parser.on("--delays LIST", Array) { |list| options[:delays] = list.map { |text| Integer(text) } }
  parser.on("--modes LIST", Array) { |list| options[:modes] = list }
end.parse!

def median(numbers)
  numbers.sort[numbers.size / 2]
end

puts "Ruby #{RUBY_VERSION}, #{options[:requests]} requests, median of #{options[:rounds]}"
puts "| delay | way | requests/s | CPU us/request | RSS MB |", "|---|---|---|---|---|"
options[:delays].each do |delay|
  pid, port = SlowBackend.start(delay)
  runs = Hash.new { |hash, mode| hash[mode] = [] }
  options[:rounds].times do
    options[:modes].each { |mode| runs[mode] << Run.new(mode, options[:requests], port).result }
  end
  runs.each do |mode, results|
    rate, cpu, rss = %i[rate cpu_us rss_kb].map { |name| median(results.map { |result| result[name] }) }
    puts "| #{delay} ms | #{mode} | #{rate.round} | #{cpu.round} | #{(rss / 1024.0).round(1)} |"
  end
ensure
  Process.kill(:TERM, pid) if pid
  Process.wait(pid) if pid
end
