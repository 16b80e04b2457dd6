# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# nginx and haproxy in front of the server: every case of the framing rows goes to the proxy, and
# the number of requests the application saw must be the number of its responses the proxy passed
# back. More would be a smuggled request: the two disagree where a message ends. Proxies that are
# not installed are skipped.

require "json"
require "minitest/autorun"
require "socket"
require "tmpdir"
require_relative "../conformance/http_rules"
require_relative "../support/raw_client"
require_relative "../support/server_process"

# A proxy as a subprocess, with a configuration of a few lines.
class ProxyProcess
  attr_reader :url

  def self.find(name)
    folders = ENV.fetch("PATH", "").split(":").push("/usr/sbin")
    folders.map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) }
  end

  def initialize(name, port)
    @directory = Dir.mktmpdir("rondo-proxy")
    own = Addrinfo.tcp("127.0.0.1", 0).bind { |socket| socket.local_address.ip_port }
    @url = "http://127.0.0.1:#{own}"
    config = File.join(@directory, "proxy.conf")
    File.write(config, name == "nginx" ? nginx(own, port) : haproxy(own, port))
    arguments = name == "nginx" ? ["-p", @directory, "-c", config] : ["-f", config]
    @pid = Process.spawn(self.class.find(name), *arguments, in: File::NULL, out: log, err: log)
    wait
  end

  def stop
    Process.kill("TERM", @pid)
    Process.wait(@pid)
    FileUtils.rm_rf(@directory)
  end

  private

  def log
    File.join(@directory, "log")
  end

  def nginx(own, port)
    <<~CONFIG
      daemon off; master_process off; pid #{@directory}/pid; error_log #{@directory}/error.log;
      events { worker_connections 256; }
      http {
        access_log off; client_body_temp_path #{@directory}/body; proxy_temp_path #{@directory}/proxy;
        fastcgi_temp_path #{@directory}/f; uwsgi_temp_path #{@directory}/u; scgi_temp_path #{@directory}/s;
        underscores_in_headers on; ignore_invalid_headers off;
        upstream app { server 127.0.0.1:#{port}; keepalive 4; }
        server {
          listen 127.0.0.1:#{own}; lingering_timeout 1s; client_header_timeout 1s; keepalive_timeout 1s;
          location / {
            proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host a;
            proxy_request_buffering off; proxy_next_upstream off; proxy_read_timeout 1s; client_body_timeout 1s;#{" "}
          }
        }
      }
    CONFIG
  end

  def haproxy(own, port)
    <<~CONFIG
      global
        maxconn 256
        nbthread 1
      defaults
        mode http
        retries 0
        timeout connect 3s
        timeout client 1s
        timeout server 1s
        timeout http-request 1s
        option http-keep-alive
        http-reuse always
      frontend in
        bind 127.0.0.1:#{own}
        default_backend app
      backend app
        server app 127.0.0.1:#{port}
    CONFIG
  end

  def wait
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 10
    begin
      TCPSocket.new("127.0.0.1", @url[/\d+\z/].to_i).close
    rescue Errno::ECONNREFUSED
      raise "the proxy does not start: #{File.read(log)}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, 0.02)
      retry
    end
  end
end

class TestProxies < Minitest::Test
  APP = File.expand_path("../conformance/echo.ru", __dir__)
  AT_ONCE = 25
  MARK = "GET /mark HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

  %w[nginx haproxy].each do |name|
    define_method("test_#{name}_agrees_on_the_number_of_requests") do
      skip "#{name} is not installed" unless ProxyProcess.find(name)
      compare(name)
    end
  end

  private

  # Framing rows (but not where the client is half gone: its request may be seen and yet have nobody
  # left to answer), and what else has been used to hide a request: line ends, blanks, names.
  def cases
    HttpRules.cases.select do |test|
      test.settings.empty? && !test.tcp_only && !test.half_close && test.bytes.bytesize < 4000 &&
        test.id.match?(/\A(01|02|15|16|17|18|2[3-9]|3[1-3])/) && !test.bytes.include?("/raise")
    end
  end

  def compare(name)
    ServerProcess.run(APP) do |server|
      proxy = ProxyProcess.new(name, server.port)
      before = seen(server)
      failures = []
      cases.each_slice(100) do |slice|
        answered = together(slice) { |test| answers_through(proxy, test) }.sum
        failures.concat(single_out(slice, proxy, server)) if seen(server) != before + answered
        before = seen(server)
      end
      assert_empty failures
      assert_operator before, :>, cases.size / 4, "hardly anything came through"
    ensure
      proxy&.stop
    end
  end

  # Some of the cases leave the proxy waiting until its timeout: many wait at the same time.
  def together(slice, &block)
    waiting = Queue.new
    slice.each { |test| waiting << test }
    waiting.close
    threads = Array.new(AT_ONCE) do
      Thread.new do
        results = []
        while (test = waiting.pop)
          results << block.call(test)
        end
        results
      end
    end
    threads.flat_map(&:value)
  end

  # The slice disagreed: find the cases that do, one by one.
  def single_out(slice, proxy, server)
    slice.filter_map do |test|
      before = seen(server)
      answered = answers_through(proxy, test)
      count = seen(server) - before
      "#{test.id} #{test.bytes[0, 200].inspect}: #{answered} answers, #{count} requests seen" if count != answered
    end
  end

  # Sends the bytes and a last request behind them, and counts the answers the application gave.
  def answers_through(proxy, test)
    RawClient.open(proxy.url) do |client|
      send_all(client, test.bytes + MARK)
      return read(client).scan(/^x-request-number: /i).size
    end
  end

  # What there is until the proxy closes, by whatever means.
  def read(client)
    bytes = +""
    while (chunk = client.read_some)
      bytes << chunk
    end
    bytes
  rescue Errno::ECONNRESET
    bytes
  end

  def send_all(client, bytes)
    client.write(bytes)
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil
  end

  # @return [Integer] requests the application got
  def seen(server)
    RawClient.open(server.url) do |client|
      return JSON.parse(client.request("GET /__counters HTTP/1.1\r\nHost: a\r\n\r\n").body)["requests"]
    end
  end
end
