# frozen_string_literal: true

# When metrics are sent, what goes wrong, and what is said of it: lib/rondo/metrics/sender.rb and statsd.rb.
# SPDX-License-Identifier: MIT

require "test_helper"
require "socket"
require "stringio"
require "support/waiting"
require "rondo/config/settings"
require "rondo/metrics/sender"

class SenderTest < Minitest::Test
  include Waiting

  # Notes what it gets.
  class Noted
    attr_reader :readings, :closed

    def initialize(error = nil)
      @readings = Thread::Queue.new
      @error = error
    end

    def send_reading(reading)
      @readings << reading
      raise @error if @error
    end

    def close
      @closed = true
    end
  end

  def setup
    @board = Rondo::Scoreboard.new(1)
    { pid: Process.pid, state: 2, started_ms: 1 }.each { |name, value| @board.set(0, name, value) }
    @text = StringIO.new
    @log = Rondo::Logger.new(io: @text)
    @before = ENV.to_h
  end

  def teardown
    @sender&.rest
    ENV.replace(@before)
  end

  def test_it_sends_again_and_again_and_once_more_at_the_end
    target = start(Noted.new)
    2.times { target.readings.pop }
    @board.set(0, :requests, 5)
    @sender.rest
    last = nil
    last = target.readings.pop until target.readings.empty?
    assert_equal 5, last.workers[0].counters[:requests]
    assert target.closed
    @sender.go_on
    target.readings.pop
  end

  def test_an_error_is_said_once
    target = start(Noted.new(Rondo::Metrics::Failed.new("no\nbody")))
    3.times { target.readings.pop }
    @sender.rest
    assert_equal "! Metrics could not be sent: no\\x0Abody (this is not said again)\n", @text.string
  end

  def test_numbers_of_statsd_are_those_of_all_workers_and_since_the_last_time
    with_statsd do |socket, statsd|
      first = lines_of(statsd, socket, requests: 3, busy: 1)
      assert_equal %w[3|c 1|g 1|g], first.values_at("rondo.requests", "rondo.busy", "rondo.workers")
      second = lines_of(statsd, socket, requests: 10, busy: 4)
      assert_equal %w[7|c 4|g], second.values_at("rondo.requests", "rondo.busy")
      @board.set(0, :started_ms, 2)
      assert_equal "2|c", lines_of(statsd, socket, requests: 2)["rondo.requests"], "a new process counts from zero"
      refute(first.keys.any? { |name| name.include?("p99") })
    end
  end

  def test_variables_of_statsd
    with_statsd("STATSD_PREFIX" => "shop", "STATSD_IMPLEMENTATION" => "statsd") do |socket, statsd|
      assert_equal "1|c", lines_of(statsd, socket, requests: 1)["shop.rondo.requests"]
    end
    { { "STATSD_ADDR" => "here" } => "STATSD_ADDR must be HOST:PORT, not \"here\"", { "STATSD_ADDR" => "a:99999" } => "HOST:PORT",
      { "STATSD_IMPLEMENTATION" => "morse" } => "morse",
      { "STATSD_IMPLEMENTATION" => "statsd", "STATSD_DEFAULT_TAGS" => "a:b" } => "tags" }.each do |variables, words|
      ENV.replace(@before.merge(variables))
      error = assert_raises(Rondo::ConfigurationError) { Rondo::Metrics.target(:statsd) }
      assert_match(/\Ametrics_to :statsd: .*#{words}/, error.message)
    end
  end

  def test_a_statsd_that_is_not_there
    ENV["STATSD_ADDR"] = "[::1]:#{free_port}"
    target = Rondo::Metrics.target(:statsd)
    reading = Rondo::Metrics::Reading.new(@board, 1)
    assert_raises(SystemCallError) { 100.times { target.send_reading(reading) } }
  end

  def test_packets_fit_into_a_frame
    with_statsd do |socket, statsd|
      statsd.send_reading(Rondo::Metrics::Reading.new(@board, 1))
      packets = all_of(socket)
      assert_operator packets.size, :>, 1
      packets.each { |packet| assert_operator packet.bytesize, :<=, 1432 }
    end
  end

  def test_settings_that_are_wrong
    error = assert_raises(Rondo::ConfigurationError) { Rondo::Metrics::Sender.start(settings(:statsd, 0), @board, @log) }
    assert_equal "metrics_interval must be at least 1, not 0", error.message
    ENV["OTEL_EXPORTER_OTLP_ENDPOINT"] = "no address"
    error = assert_raises(Rondo::ConfigurationError) { Rondo::Metrics::Sender.start(settings(:opentelemetry, 1), @board, @log) }
    assert_match(/\Ametrics_to :opentelemetry: invalid url .*no address\z/, error.message)
  end

  private

  def settings(target, interval)
    Rondo::Settings::Resolved.new({ metrics_to: [target, "test"], metrics_interval: [interval, "test"] })
  end

  def start(target)
    @sender = Rondo::Metrics::Sender.new(target, @board, @log, interval: 0.01)
    @sender.go_on
    target
  end

  def with_statsd(variables = {})
    socket = UDPSocket.new
    socket.bind("127.0.0.1", 0)
    ENV.replace(@before.merge("STATSD_ADDR" => "127.0.0.1:#{socket.addr[1]}", **variables))
    yield socket, Rondo::Metrics.target(:statsd)
  ensure
    socket.close
  end

  # @return [Hash{String => String}]
  def lines_of(statsd, socket, **values)
    values.each { |name, value| @board.set(0, name, value) }
    statsd.send_reading(Rondo::Metrics::Reading.new(@board, 1))
    all_of(socket).flat_map { |packet| packet.split("\n") }.to_h { |line| line.split(":", 2) }
  end

  def all_of(socket)
    packets = []
    while (packet, = socket.recvfrom_nonblock(65_536, exception: false)) && packet != :wait_readable
      packets << packet
    end
    packets
  end

  def free_port
    socket = UDPSocket.new(Socket::AF_INET6)
    socket.bind("::1", 0)
    socket.addr[1]
  ensure
    socket.close
  end
end
