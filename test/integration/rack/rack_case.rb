# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# What the tests of this folder share: a server on a thread of the test's own process, so that the
# application and the test can hand each other objects and wait for each other with queues. Every
# application stands behind Rack::Lint unless a test breaks the rules on purpose. Bytes go through
# test/support/raw_client.rb.

require "test_helper"
require "rack"
require "rack/lint"
require "rondo"
require "support/raw_client"
require "support/xor_proxy"

class RackCase < Minitest::Test
  # The time in which things that should happen soon may happen on a loaded machine.
  PATIENCE = 60

  # The settings of all servers, unless a test gives others: RONDO_TEST_FIBERS=N runs the tests with fibers.
  EVERYWHERE = { **(ENV.key?("RONDO_TEST_FIBERS") ? { fibers: Integer(ENV["RONDO_TEST_FIBERS"]) } : {}), **XorProxy.settings }.freeze

  # For tests of what a thread alone has: a place for each, and an exception that another thread raises in it.
  def needs_threads
    skip "these servers have fibers: RONDO_TEST_FIBERS" if EVERYWHERE.key?(:fibers)
  end

  # Records the log of the server.
  class Log
    def initialize
      @lines = []
      @mutex = Mutex.new
    end

    %i[debug info warn error].each do |level|
      define_method(level) { |line| @mutex.synchronize { @lines << "#{level}: #{line}" } }
    end

    def text
      @mutex.synchronize { @lines.join("\n") }
    end
  end

  # A body that records its calls.
  class Body
    attr_reader :closes

    def initialize(*parts, log: nil, &each)
      @parts = parts
      @each = each
      @log = log
      @closes = 0
    end

    def each(&block)
      @each ? @each.call(block) : @parts.each(&block)
    end

    def close
      @closes += 1
      @log << :close if @log
    end
  end

  # A body that names a file as well.
  class FileBody < Body
    attr_reader :to_path

    def initialize(path)
      super("each was ", "called")
      @to_path = path
    end
  end

  # A server of this process, its thread and its log.
  class Running
    attr_reader :server, :thread, :log, :url

    def initialize(app, **settings)
      @log = Log.new
      @server = Rondo::Server.new(app, log: @log, **EVERYWHERE, **settings)
      @url = XorProxy.front(@server.listen(XorProxy.bind("tcp://127.0.0.1:0")))
      @thread = Thread.new { @server.run }
      @thread.report_on_exception = false
    end

    def port
      url[/\d+\z/].to_i
    end

    def stop
      return unless @thread.alive?
      @server.stop
      return if @thread.join(PATIENCE)
      @server.stop(force: true)
      @thread.join(PATIENCE) or raise "the server does not stop:\n#{@log.text}"
    end
  end

  def setup
    @running = []
    @clients = []
  end

  def teardown
    @clients.each(&:close)
    @running.each(&:stop)
  end

  # @param app [#call]
  # @param lint [Boolean] behind Rack::Lint
  # @return [Running]
  def start(app = nil, lint: true, environment: "production", **settings, &block)
    app ||= block
    app = Rack::Lint.new(app) if lint
    running = Running.new(app, environment: environment, **settings)
    @running << running
    running
  end

  # Starts the application and returns a client connected to it.
  def serve(app = nil, **options, &block)
    connect(start(app, **options, &block))
  end

  def connect(running = @running.last, **options)
    client = RawClient.new(running.url, **options)
    @clients << client
    client
  end

  def log
    @running.last.log.text
  end

  # One request as bytes; its fields are a Hash, or keywords with Strings.
  def bytes(method, path, headers = {}, body = nil, version: "1.1", **fields)
    headers = { "Host" => "test.example" }.merge(headers, fields)
    headers = headers.merge("Content-Length" => body.bytesize) if body && !framed?(headers)
    lines = headers.flat_map { |name, value| Array(value).map { |one| "#{name}: #{one}\r\n" } }
    "#{method} #{path} HTTP/#{version}\r\n#{lines.join}\r\n#{body}"
  end

  def framed?(headers)
    headers.keys.any? { |name| %w[content-length transfer-encoding].include?(name.downcase) }
  end

  def get(client, path = "/", headers = {}, version: "1.1", **fields)
    client.request(bytes("GET", path, headers, version: version, **fields))
  end

  def post(client, path, body, headers = {})
    client.request(bytes("POST", path, headers, body))
  end

  def chunked(*parts)
    parts.map { |part| "#{part.bytesize.to_s(16)}\r\n#{part}\r\n" }.join + "0\r\n\r\n"
  end

  # Takes the next object of a queue; fails instead of waiting for ever.
  def take(queue, what = "what was waited for")
    limit = now + PATIENCE
    begin
      queue.pop(true)
    rescue ThreadError
      flunk "#{what} did not happen; the log:\n#{log}" if now > limit
      Thread.pass
      IO.select(nil, nil, nil, 0.002)
      retry
    end
  end

  # Waits until the block is true.
  def eventually(what = "what was waited for")
    limit = now + PATIENCE
    until (result = yield)
      flunk "#{what} did not happen; the log:\n#{log}" if now > limit
      IO.select(nil, nil, nil, 0.002)
    end
    result
  end

  # A client may have the whole answer before its body is closed.
  def assert_closed(body, times = 1)
    eventually("the body is closed #{times} times") { body.closes >= times }
    assert_equal times, body.closes
  end

  # The value of a thread; fails instead of waiting for ever.
  def value_of(thread)
    thread.join(PATIENCE) or flunk "a thread does not end: #{thread.backtrace&.first(8)}\n#{log}"
    thread.value
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
