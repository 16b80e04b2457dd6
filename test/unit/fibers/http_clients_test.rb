# frozen_string_literal: true

# The HTTP clients of Ruby's own library in fibers with Rondo::Scheduler: the rows of docs/FIBERS.md that need no gem.
# SPDX-License-Identifier: MIT

require "test_helper"
require "net/http"
require "open-uri"
require "support/http_gate"
require "support/waiting_clients"

class FibersNetHTTPTest < Minitest::Test
  include WaitingClients

  ROW = ["Net::HTTP", "yes"].freeze

  def self.gate
    @gate ||= HTTPGate.new
  end

  def gate = self.class.gate
  def connect = Net::HTTP.start("127.0.0.1", gate.port)
  def enter(http, number) = Integer(http.get("/wait/#{number}").body)
  def session_of(_http, number) = number
  def leave(http) = (http.finish if http.started?)
  def lost_errors = [EOFError, SystemCallError, IOError]
end

class FibersOpenSSLTest < FibersNetHTTPTest
  ROW = ["OpenSSL", "yes"].freeze

  def self.gate
    @gate ||= HTTPGate.new(tls: true)
  end

  def connect = Net::HTTP.start("127.0.0.1", gate.port, use_ssl: true, ca_file: gate.authority)
  def lost_errors = [*super, OpenSSL::SSL::SSLError]
end

class FibersOpenURITest < Minitest::Test
  include WaitingClients

  ROW = ["open-uri", "yes"].freeze

  def self.gate
    @gate ||= HTTPGate.new
  end

  def gate = self.class.gate
  def connect = URI
  def enter(uri, number) = Integer(uri.parse(gate.url("/wait/#{number}")).read)
  def session_of(_uri, number) = number
  def leave(_uri) = nil
  def lost_errors = [EOFError, SystemCallError, IOError]
end

# A client that has given up leaves its call in the gate. Such a call must not stay behind when the gate is shut at
# once after it was opened.
class HTTPGateTest < Minitest::Test
  def test_an_open_gate_lets_all_pass_that_wait
    gate = HTTPGate.new
    gone = TCPSocket.new("127.0.0.1", gate.port)
    gone.write("GET /wait/1 HTTP/1.1\r\n\r\n")
    WaitingClients.wait_until { gate.inside == 1 }
    gone.close
    TCPSocket.open("127.0.0.1", gate.port) do |socket|
      socket.write("GET /open HTTP/1.1\r\n\r\nGET /shut HTTP/1.1\r\n\r\n")
      WaitingClients.wait_until { gate.inside.zero? }
    end
    assert_predicate gate.inside, :zero?
  ensure
    gate&.close
  end
end
