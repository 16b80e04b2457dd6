# frozen_string_literal: true

# metrics_to: servers with and without workers send their numbers to a real socket of StatsD, and by OTLP to a receiver of
# HTTP; what is not there delays nothing. lib/rondo/metrics/.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "opentelemetry-exporter-otlp-metrics"
require "zlib"

class MetricsSentTest < ShellCase
  # Takes OTLP over HTTP.
  class Collector
    REQUEST = Opentelemetry::Proto::Collector::Metrics::V1::ExportMetricsServiceRequest
    attr_reader :received

    def initialize(status: "200 OK")
      @server = TCPServer.new("127.0.0.1", 0)
      @received = Thread::Queue.new
      @status = status
      @thread = Thread.new { loop { serve(@server.accept) } }
      @thread.report_on_exception = false
    end

    def url
      "http://127.0.0.1:#{@server.addr[1]}"
    end

    def close
      @thread.kill.join
      @server.close
    end

    private

    def serve(socket)
      while (head = socket.gets("\r\n\r\n"))
        body = socket.read(head[/^content-length: (\d+)/i, 1].to_i)
        body = Zlib.gunzip(body) if head.match?(/^content-encoding: gzip/i)
        @received << [head, REQUEST.decode(body)]
        socket.write("HTTP/1.1 #{@status}\r\ncontent-length: 0\r\n\r\n")
      end
    rescue SystemCallError
      nil # the server has ended
    ensure
      socket.close
    end
  end

  def setup
    super
    write "config.ru", HELLO
    @statsd = UDPSocket.new
    @statsd.bind("127.0.0.1", 0)
  end

  def teardown
    super
    @statsd.close
    @collector&.close
  end

  def test_statsd_without_workers
    server = serve_to_statsd
    3.times { get(server) }
    counts = gather { |all| all["rondo.requests"].to_i >= 3 && all["rondo.request_duration_seconds.p99"] }
    assert_equal "1", counts["rondo.workers"]
    assert_operator Float(counts["rondo.request_duration_seconds.p50"]), :<=, Float(counts["rondo.request_duration_seconds.p99"])
    assert_operator Integer(counts["rondo.rss_bytes"]), :>, 1 << 20
  end

  def test_statsd_gets_the_last_numbers_at_the_end
    server = serve_to_statsd(interval: 3600)
    5.times { get(server) }
    server.stop
    assert_equal "5", gather { |all| all["rondo.requests"] }["rondo.requests"]
  end

  def test_workers_are_counted_together_by_the_master
    server = serve_to_statsd("-w", "2")
    server.wait_for_log(/Use Ctrl-C/)
    8.times { get(server) }
    counts = gather { |all| all["rondo.requests"].to_i >= 8 && all["rondo.workers"] == "2" }
    assert_equal "8", counts["rondo.requests"]
  end

  # The socket shows the sender: it stays the same, so one process sends, and it is no worker.
  def test_only_the_master_sends_and_a_restart_goes_on
    server = serve_to_statsd("-w", "2")
    server.wait_for_log(/Use Ctrl-C/)
    gather { |all| all["rondo.workers"] == "2" }
    assert_equal 1, @senders.uniq.size
    mark = server.log.bytesize
    Process.kill("USR2", server.pid)
    server.wait_for_log(/Use Ctrl-C/, from: mark)
    # Until they end, the workers of the master before may answer, and are not on the scoreboard of this one.
    gather { |all| get(server) && all["rondo.requests"].to_i.positive? && all["rondo.workers"] == "2" }
  end

  def test_opentelemetry_without_workers
    collect
    server = serve_to_collector
    4.times { get(server) }
    metrics, resource = exported { |all| all["rondo.requests"].sum.data_points[0]&.as_int == 4 }
    requests = metrics["rondo.requests"].sum
    assert requests.is_monotonic
    assert_equal :AGGREGATION_TEMPORALITY_CUMULATIVE, requests.aggregation_temporality
    assert_equal({ "worker" => 0 }, attributes(requests.data_points[0].attributes))
    times = metrics["rondo.request_duration_seconds"].histogram.data_points[0]
    assert_equal 4, times.count
    assert_equal 4, times.bucket_counts.sum
    assert_equal times.explicit_bounds.size + 1, times.bucket_counts.size
    assert_operator times.sum, :>, 0
    assert_equal "By", metrics["rondo.bytes_out"].unit
    assert_operator metrics["rondo.bytes_out"].sum.data_points[0].as_int, :>, 4 * 5
    assert_equal ["shop", 36], attributes(resource.attributes).then { |all| [all["service.name"], all["service.instance.id"].size] }
  end

  def test_opentelemetry_with_workers
    collect
    server = serve_to_collector("-w", "2")
    server.wait_for_log(/Use Ctrl-C/)
    6.times { get(server) }
    metrics, = exported { |all| all["rondo.requests"].sum.data_points.sum(&:as_int) == 6 }
    assert_equal [0, 1], (metrics["rondo.requests"].sum.data_points.map { |point| attributes(point.attributes)["worker"] }.sort)
    assert_equal 2, metrics["rondo.worker_age_seconds"].gauge.data_points.size
  end

  def test_a_collector_that_refuses_is_named_once
    collect(status: "400 Bad Request")
    server = serve_to_collector
    3.times { @collector.received.pop }
    assert_equal "hello", get(server).body
    server.stop
    assert_equal 1, server.log.scan(/^! Metrics could not be sent: /).size, server.log
    assert_operator server.log.lines.size, :<, 20, server.log
  end

  def test_a_collector_that_is_silent_delays_no_stop
    silent = TCPServer.new("127.0.0.1", 0)
    server = serve_to_collector(url: "http://127.0.0.1:#{silent.addr[1]}")
    accepted = silent.accept
    assert_equal "hello", get(server).body
    server.stop
  ensure
    [accepted, silent].compact.each(&:close)
  end

  def test_a_gem_that_is_missing_is_one_line
    bare = { "RUBYLIB" => ENV["RUBYLIB"].split(":").grep_v(/statsd|opentelemetry/).join(":") }
    { "statsd" => "statsd-instrument", "opentelemetry" => "opentelemetry-exporter-otlp-metrics" }.each do |name, gem|
      config = write("rondo.rb", "metrics_to :#{name}\nbind 'tcp://127.0.0.1:0'\n")
      [[], %w[-w 1]].each do |workers|
        assert_complaint 1, /metrics_to :#{name} needs the gem #{gem}: add it to the Gemfile/,
                         rondo("-C", config, *workers, "config.ru", env: bare)
      end
      result = rondo("check", "-C", config, "config.ru", env: bare)
      assert_match(/^failed  metrics: metrics_to :#{name} needs the gem #{gem}/, result.out)
    end
  end

  def test_what_is_off_is_not_loaded
    write "config.ru", "run ->(_) { [200, {}, [$LOADED_FEATURES.grep(/rondo\\/metrics\\/(?!metrics)|statsd|opentelemetry/).inspect]] }\n"
    assert_equal "[]", get(start("config.ru")).body
  end

  private

  def configuration(name, interval)
    write "rondo.rb", "metrics_to :#{name}\nmetrics_interval #{interval}\n"
  end

  def serve_to_statsd(*words, interval: 1)
    @senders = []
    start("-C", configuration(:statsd, interval), *words, "config.ru", env: { "STATSD_ADDR" => "127.0.0.1:#{@statsd.addr[1]}" })
  end

  def collect(**options)
    @collector = Collector.new(**options)
  end

  def serve_to_collector(*words, url: @collector.url)
    start("-C", configuration(:opentelemetry, 1), *words, "config.ru", env: { "OTEL_EXPORTER_OTLP_ENDPOINT" => url, "OTEL_SERVICE_NAME" => "shop" })
  end

  # Counters add up, of gauges the last one counts.
  def gather
    all = {}
    eventually("all numbers in #{all}") do
      packet, from = @statsd.recvfrom(65_536) if @statsd.wait_readable(1)
      @senders << from[1] if from
      packet.to_s.each_line(chomp: true) do |line|
        name, value, type = line.match(/\A([\w.]+):([\d.]+)\|([cg])\z/)&.captures
        flunk line unless name
        all[name] = type == "c" ? (all[name].to_i + value.to_i).to_s : value
      end
      all if yield(all)
    end
  end

  def exported
    eventually("the numbers in an export") do
      _, request = @collector.received.pop
      one = request.resource_metrics[0] or next
      metrics = one.scope_metrics[0].metrics.to_h { |metric| [metric.name, metric] }
      [metrics, one.resource] if yield(metrics)
    end
  end

  def attributes(list)
    list.to_h { |pair| [pair.key, pair.value.public_send(pair.value.value)] }
  end
end
