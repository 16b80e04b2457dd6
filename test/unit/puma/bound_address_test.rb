# frozen_string_literal: true

# Addresses of the server where its sockets are in another process.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/puma/bound_address"

class BoundAddressTest < Minitest::Test
  def bound(url)
    Rondo::BoundAddress.new(url)
  end

  # @return [Array] what a real socket says
  def real(host)
    server = TCPServer.new(host, 0)
    [server.addr, server.local_address, server.addr[1]]
  rescue Errno::EADDRNOTAVAIL
    skip "this machine has no #{host}"
  ensure
    server&.close
  end

  def test_it_answers_as_a_socket
    { "127.0.0.1" => "http://127.0.0.1:%d", "::1" => "https://[::1]:%d" }.each do |host, url|
      addr, address, port = real(host)
      found = bound(format(url, port))
      assert_equal addr, found.addr
      assert_equal [address.ip_address, port], [found.local_address.ip_address, found.local_address.ip_port]
      assert_nil found.path
      assert_equal format(url, port), found.to_s
    end
  end

  def test_unix_sockets
    assert_equal ["AF_UNIX", "/run/a b.sock"], bound("unix:///run/a b.sock").addr
    assert_equal "/run/x", bound("unix:///run/x").local_address.unix_path
    assert_equal "\0name", bound("unix://@name").path
  end
end
