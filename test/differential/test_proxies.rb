# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# nginx and haproxy in front of the server: every case of the framing rows goes to the proxy, and
# the number of requests the application saw must be the number of its responses the proxy passed
# back. More would be a smuggled request: the two disagree where a message ends. Proxies that are
# not installed are skipped. haproxy does it once more with HTTP/2 between itself and the server; nginx speaks HTTP/2 to no
# server behind it.

require "json"
require "minitest/autorun"
require_relative "../conformance/http_rules"
require_relative "../support/proxy_process"
require_relative "../support/raw_client"
require_relative "../support/server_process"

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

  def test_haproxy_agrees_on_the_number_of_requests_over_http2
    skip "haproxy is not installed" unless ProxyProcess.find("haproxy")
    compare("haproxy", version: "HTTP/2", settings: { http2: true }, server: "proto h2")
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

  def compare(name, version: "HTTP/1.1", settings: {}, **options)
    ServerProcess.run(APP, settings: settings) do |server|
      proxy = ProxyProcess.new(name, server.port, **options)
      assert_equal version, version_behind(proxy)
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

  # @return [String] what the proxy speaks with the server
  def version_behind(proxy)
    RawClient.open(proxy.url) { |client| JSON.parse(client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").body)["SERVER_PROTOCOL"] }
  end

  # @return [Integer] requests the application got
  def seen(server)
    RawClient.open(server.url) do |client|
      return JSON.parse(client.request("GET /__counters HTTP/1.1\r\nHost: a\r\n\r\n").body)["requests"]
    end
  end
end
