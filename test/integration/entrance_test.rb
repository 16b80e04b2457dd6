# frozen_string_literal: true

# Verbs of Puma that change what the application gets, and out_of_band and idle_timeout.
# SPDX-License-Identifier: MIT

require_relative "shell_case"

class EntranceTest < ShellCase
  # Answers who the client is, and how many requests have left something in the fiber.
  APP = <<~RUBY
    run lambda { |env|
      File.open("gate", "r+") { |gate| warn("slow began") || gate.read(1) } if env["PATH_INFO"] == "/slow"
      count = Thread.current[:count] = Thread.current[:count].to_i + 1
      [200, {}, [[env["REMOTE_ADDR"], env["rack.url_scheme"], count, env["rack.input"]&.read.to_s.size].join(" ")]]
    }
  RUBY

  def serve(config, **options)
    write "config.ru", APP
    write "config/puma.rb", config
    start(**options)
  end

  # @return [String] the body of the answer to these bytes
  def answer(server, head, before: "")
    TCPSocket.open("127.0.0.1", server.port) do |socket|
      socket.write("#{before}#{head} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      socket.read
    end
  end

  def body(...)
    answer(...).split("\r\n\r\n", 2).last
  end

  def test_a_field_names_the_client
    server = serve("set_remote_address header: 'X-Real-IP'\nlog_requests\n")
    { "192.0.2.1" => "192.0.2.1", "192.0.2.1, 10.0.0.1" => "192.0.2.1", "2001:db8::1" => "2001:db8::1",
      "unknown" => "127.0.0.1", "" => "127.0.0.1" }.each do |value, client|
      assert_match(/\A#{client} http \d+ 0\z/, get(server, "/", "X-Real-IP" => value, "X-Forwarded-For" => "192.0.2.9").body)
    end
    server.wait_for_log(/^192\.0\.2\.1 - - .*"GET/)
    assert_match(/^! set_remote_address \(puma\.rb\): every peer may name the client by x-real-ip; trusted_proxies says which may$/, server.log)
  end

  def test_only_trusted_proxies_name_the_client
    server = serve("set_remote_address header: 'X-Real-IP'\ntrusted_proxies ['10.0.0.1']\n")
    assert_match(/\A127\.0\.0\.1 /, get(server, "/", "X-Real-IP" => "192.0.2.1").body)
    refute_match(/every peer/, server.log)
  end

  def test_one_address_for_all
    { ":localhost" => "127.0.0.1", "'192.0.2.7'" => "192.0.2.7" }.each do |value, client|
      server = serve("set_remote_address #{value}\ntrusted_proxies ['127.0.0.1']\n")
      assert_match(/\A#{client} https /, get(server, "/", "X-Forwarded-For" => "192.0.2.9", "X-Forwarded-Proto" => "https").body)
      server.stop
    end
  end

  # As for Puma, a connection may also begin without the header.
  def test_the_proxy_header_names_the_client
    server = serve("set_remote_address proxy_protocol: :v1\n")
    assert_match(/^! set_remote_address \(puma\.rb\): every peer may name the client by a PROXY header; proxy_protocol_from says/, server.log)
    assert_match(/\A192\.0\.2\.1 /, body(server, "GET /", before: "PROXY TCP4 192.0.2.1 192.0.2.2 5 80\r\n"))
    assert_match(/\A127\.0\.0\.1 /, body(server, "GET /"))
    assert_match(/\A127\.0\.0\.1 /, body(server, "PUT /"))
    refute_match(/ 200 /, answer(server, "GET /", before: "PROXY TCP4 192.0.2.1\r\n"))
  end

  def test_other_methods_are_answered_501
    server = serve("supported_http_methods %w[GET PROPFIND]\n")
    assert_match(%r{\AHTTP/1\.1 200 }, answer(server, "PROPFIND /"))
    assert_match(%r{\AHTTP/1\.1 501 .*\r\n\r\nDELETE method is not supported\z}m, answer(server, "DELETE /"))
  end

  def test_each_request_finds_an_empty_fiber
    server = serve("clean_thread_locals\nthreads 1, 1\n")
    post = ->(text) { Net::HTTP.new("127.0.0.1", server.port).post("/", text).body }
    assert_equal ["127.0.0.1 http 1 0", "127.0.0.1 http 1 5", "127.0.0.1 http 1 200000"], ["", "12345", "x" * 200_000].map(&post)
  end

  # A request that is under way is work: its end asks again.
  def test_out_of_band
    File.mkfifo(File.join(@folder, "gate"))
    server = serve("out_of_band { warn 'out of band' }\nout_of_band { raise 'no' }\nthreads 2, 2\n")
    refute_match(/out of band/, server.log)
    get(server)
    server.wait_for_log(/^out of band\n! out_of_band raised at .*puma\.rb:2: no \(RuntimeError\)$/)
    client = Thread.new { get(server, "/slow") }
    server.wait_for_log(/^slow began$/)
    5.times { get(server) }
    assert_equal 1, server.log.scan(/^out of band$/).size
    File.write(File.join(@folder, "gate"), ".")
    client.join
    eventually("the second time") { server.log.scan(/^out of band$/).size == 2 }
  end

  def test_a_server_without_requests_stops
    [0, 1].each do |workers|
      server = serve("idle_timeout 1\nworkers #{workers}\nafter_stopped { warn 'stopped' }\n")
      assert_equal 0, server.stop(signal: 0).exitstatus
      assert_match(/^- Idle timeout reached$.*^stopped$/m, server.log)
    end
  end
end
