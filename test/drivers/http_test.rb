# frozen_string_literal: true

# Clients for HTTP that are gems. Those of Ruby are in test/unit/fibers/http_clients_test.rb.
# SPDX-License-Identifier: MIT

require_relative "servers"
require "faraday"
require "httpx"
require "net/http/persistent"

class DriverNetHTTPPersistentTest < Minitest::Test
  include WaitingClients

  ROW = ["net-http-persistent", "yes"].freeze

  def setup
    @http = Net::HTTP::Persistent.new(name: "drivers")
  end

  def teardown
    leave_all
  end

  def gate = Servers.http
  def connect = @http
  def enter(http, number) = Integer(http.request(URI(gate.url("/wait/#{number}"))).body)
  def session_of(_http, number) = number
  def leave(_http) = nil
  def leave_all = @http.shutdown
  def lost_errors = [Net::HTTP::Persistent::Error, SystemCallError, IOError]

  def test_connections_are_used_again
    gate.shut
    before = WaitingClients.descriptors
    WaitingClients.in_fibers { |all| 10.times { all.map(1..3) { @http.request(URI(gate.url("/inside"))) } } }
    assert_operator WaitingClients.descriptors - before, :<=, 3
  end
end

class DriverFaradayTest < Minitest::Test
  include WaitingClients

  ROW = ["Faraday", "yes"].freeze

  def gate = Servers.https
  def connect = Faraday.new(gate.url, ssl: { ca_file: gate.authority })
  def enter(connection, number) = Integer(connection.get("/wait/#{number}").body)
  def session_of(_connection, number) = number
  def leave(connection) = connection.close
  def lost_errors = [Faraday::Error]

  # The client's own limit.
  def test_a_limit_of_the_client
    gate.shut
    ask = -> { connect.get("/wait/1") { |request| request.options.timeout = 0.1 } }
    error = WaitingClients.in_fibers { WaitingClients.error_of(&ask) }
    assert_equal Faraday::TimeoutError, error
  ensure
    gate.open # for what is left of it in the server
  end
end

class DriverHTTPXTest < Minitest::Test
  include WaitingClients

  ROW = ["httpx", "yes"].freeze

  def gate = @gate || Servers.http
  def connect = HTTPX
  def enter(http, number) = Integer(http.get(gate.url("/wait/#{number}")).raise_for_status.to_s)
  def session_of(_http, number) = number
  def leave(_http) = nil
  def lost_errors = [HTTPX::Error, SystemCallError, IOError]

  # Two servers as one.
  Both = Struct.new(:gates) do
    def inside = gates.sum(&:inside)
    def open = gates.each(&:open)
    def shut = gates.each(&:shut)
  end

  # It waits for several connections by IO.select, which asks a scheduler from Ruby 3.2 on.
  def test_several_requests_in_one_call
    skip "Ruby #{RUBY_VERSION} does not ask a scheduler for IO.select" if RUBY_VERSION < "3.2"
    @gate = Both.new([Servers.http, Servers.https])
    values = with_keeper(inside: 2) do
      HTTPX.with(ssl: { ca_file: Servers.https.authority }).get(*@gate.gates.map { |gate| gate.url("/wait/3") }).map(&:to_s)
    end
    assert_equal %w[21 21], values
  end
end
