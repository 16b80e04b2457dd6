# frozen_string_literal: true

# More clients stall than calls may wait, with default settings, and another client wants to be served.
# rack/waiting_test.rb does the same on a small scale.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "support/raw_client"

class WaitingClientsTest < ShellCase
  COUNT = 1_100 # the default of max_parked_bodies is 1024
  DESCRIPTORS = 4_096
  APP = <<~RUBY
    PART = ("x" * 60_000).freeze
    BODY = Enumerator.new { |out| loop { out << PART } }
    run lambda { |env|
      case env["PATH_INFO"]
      when "/read" then [200, {}, [env["rack.input"].read]]
      when "/unread" then [200, {}, BODY]
      else [200, {}, ["hello"]]
      end
    }
  RUBY
  EXPECTING = "POST /read HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
  UNREAD = "GET /unread HTTP/1.1\r\nHost: a\r\n\r\n"

  def setup
    super
    @before = Process.getrlimit(:NOFILE)
    skip "#{@before.last} descriptors are too few" if @before.last < DESCRIPTORS
    Process.setrlimit(:NOFILE, [@before.first, DESCRIPTORS].max, @before.last)
    write "config.ru", APP
    @attackers = []
  end

  def teardown
    @attackers&.each(&:close)
    Process.setrlimit(:NOFILE, *@before)
    super
  end

  # Over a Unix socket, because its buffers are small. The kernel keeps megabytes for each TCP client.
  def attack(server, request)
    COUNT.times { @attackers << RawClient.new(server.unix_url).write(request) }
  end

  def start_server
    start(unix: true, spawn: { rlimit_nofile: DESCRIPTORS })
  end

  def assert_serves(server)
    3.times { assert_equal "hello", get(server).body }
  end

  def threads(server)
    File.read("/proc/#{server.pid}/status")[/^Threads:\s+(\d+)/, 1].to_i
  end

  def test_clients_that_expect_a_100_and_send_nothing
    server = start_server
    attack(server, EXPECTING)
    @attackers.each { |client| assert_equal 100, client.response(interim: true, timeout: PATIENCE).status }
    assert_serves(server)
    assert_operator threads(server), :<, 100
    @attackers.each { |client| client.write("hello") }
    @attackers.each { |client| assert_equal "hello", client.response(timeout: PATIENCE).body }
    refute_match(/Gave up/, server.log)
  end

  # The budget for queued output (total_output_bytes) is full before the limit of calls is reached.
  def test_clients_that_do_not_read
    assert_outlives_unread_bodies(/^Closed the connection of \S+: clients that do not read fill the memory they may use/)
  end

  def test_clients_that_do_not_read_where_memory_is_plenty
    write "config/rondo.rb", "total_output_bytes 1 << 40\n"
    assert_outlives_unread_bodies(/^Gave up the client \S+: too many calls wait for their clients \(max_parked_bodies\)/)
  end

  def assert_outlives_unread_bodies(line)
    server = start_server
    attack(server, UNREAD)
    assert_serves(server)
    server.wait_for_log(line)
    assert_serves(server)
    assert_operator threads(server), :<, 1_024 + 50
  end
end
