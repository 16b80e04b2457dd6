# frozen_string_literal: true

# The server object: which arguments it refuses, where it listens, how it ends.
# SPDX-License-Identifier: MIT

require "test_helper"
require "net/http"
require "socket"
require "rondo"

class ServerTest < Minitest::Test
  HELLO = ->(_env) { [200, {}, ["hello"]] }

  def complaint(app = HELLO, **settings)
    assert_raises(Rondo::SettingError) { Rondo::Server.new(app, **settings) }.message
  end

  def test_settings_that_are_wrong
    assert_equal "unknown setting max_body_byte; did you mean max_body_bytes?", complaint(max_body_byte: 1)
    assert_equal "unknown setting qwertz", complaint(qwertz: 1)
    assert_equal 'backlog must be an Integer (count), not "5"', complaint(backlog: "5")
    assert_match(/\Abacklog 0 is not between 1 and /, complaint(backlog: 0))
    assert_match(/call/, complaint(Object.new))
    assert_match(/call/, complaint(nil))
    assert_equal "public: cannot read the folder /no/such/folder: No such file or directory",
                 complaint(nil, public: "/no/such/folder")
    assert_match(/nonsense is not an address or network/, complaint(trusted_proxies: ["nonsense"]))
  end

  def test_options_of_the_wrong_type
    { trusted_proxies: "an Array", proxy_protocol_from: "an Array", url_scheme: "a String", default_host: "a String",
      public: "a String", x_sendfile_roots: "an Array", sendfile_type: "a String",
      lowlevel_error_handler: "something that responds to call" }.each do |name, kind|
      assert_equal "#{name} must be #{kind}, not 5", complaint(name => 5)
    end
    assert_equal 'trusted_proxies must be an Array, not "x"', complaint(trusted_proxies: "x")
    assert_equal 'trusted_proxies has a null byte: ["a\u0000"]', complaint(trusted_proxies: ["a\0"])
    assert_equal 'default_host has a null byte: "a\u0000"', complaint(default_host: "a\0")
  end

  def test_several_applications
    server = Rondo::Server.new(HELLO)
    other = ->(env) { [200, {}, ["other ", env["PATH_INFO"]]] }
    urls = [server.listen("tcp://127.0.0.1:0"), server.listen("tcp://127.0.0.1:0", other),
            server.listen("tcp://localhost:0", other), server.listen("tcp://127.0.0.1:0", HELLO)]
    thread = Thread.new { server.run }
    answers = urls.map { |url| Net::HTTP.get(URI("#{url}/x")) }
    assert_equal ["hello", "other /x", "other /x", "hello"], answers
    assert_equal 4, server.stats[:requests]
    assert_raises(ArgumentError) { server.listen("tcp://127.0.0.1:0", Object.new) }
  ensure
    server.stop
    thread&.join
  end

  def test_nothing_to_listen_on
    error = assert_raises(Rondo::AddressError) { Rondo::Server.new(HELLO).run }
    assert_equal "the server has no address to listen on", error.message
    assert_nil Rondo::Server.new(HELLO, needs_address: false).tap(&:stop).run
  end

  def test_addresses_and_descriptors
    server = Rondo::Server.new(HELLO)
    urls = [server.listen("tcp://127.0.0.1:0"), server.listen("unix://@rondo-unit-#{Process.pid}")]
    assert_equal urls, server.addresses
    assert_equal urls, server.descriptors.keys
    assert(server.descriptors.values.all?(Integer))
  ensure
    server.stop(force: true)
    server.run
  end

  def test_all_addresses_of_localhost_get_one_port
    server = Rondo::Server.new(HELLO)
    server.listen("tcp://localhost:0")
    assert_equal 1, server.addresses.map { |url| url[/\d+\z/] }.uniq.size
  ensure
    server.stop(force: true)
    server.run
  end

  def test_an_adopted_descriptor
    TCPServer.open("127.0.0.1", 0) do |socket|
      given = socket.dup
      given.autoclose = false # the server closes it
      server = Rondo::Server.new(HELLO)
      assert_equal "http://127.0.0.1:#{socket.addr[1]}", server.listen_fd(given.fileno)
      assert_equal "hello", answer(server)
    end
  end

  def test_a_descriptor_with_a_scheme_that_is_not_known
    TCPServer.open("127.0.0.1", 0) do |socket|
      error = assert_raises(Rondo::AddressError) { Rondo::Server.new(HELLO).listen_fd(socket.fileno, scheme: "https") }
      assert_equal "cannot listen on inherited descriptor #{socket.fileno}: no certificate for https", error.message
      assert_predicate socket.addr, :any?
    end
  end

  def test_a_descriptor_that_the_poller_refuses_stays_the_callers
    TCPServer.open("127.0.0.1", 0) do |socket|
      given = socket.dup
      given.autoclose = false # the server closes it
      server = Rondo::Server.new(HELLO, poll_only: 0)
      skip "poll(2) takes a descriptor twice" unless server.poller == "epoll"
      server.listen_fd(given.fileno)
      assert_raises(Rondo::AddressError) { server.listen_fd(given.fileno) }
      assert_equal socket.addr, given.addr
      assert_equal "hello", answer(server)
    end
  end

  def test_several_in_one_process
    servers = Array.new(3) { |n| Rondo::Server.new(->(_env) { [200, {}, [n.to_s]] }) }
    servers.each { |server| server.listen("tcp://127.0.0.1:0") }
    assert_equal(%w[0 1 2], servers.map { |server| answer(server) })
  end

  def test_counters
    server = Rondo::Server.new(HELLO)
    server.listen("tcp://127.0.0.1:0")
    answer(server)
    assert_equal [1, 1, 0], server.stats.values_at(:requests, :accepted, :refused)
    assert_includes %w[epoll kqueue poll], server.poller
  end

  private

  # Runs the server for one request.
  # @return [String] the body
  def answer(server)
    thread = Thread.new { server.run }
    TCPSocket.open("127.0.0.1", server.addresses.first[/\d+\z/].to_i) do |socket|
      socket.write("GET / HTTP/1.0\r\n\r\n")
      socket.read[/\r\n\r\n(.*)\z/m, 1]
    end
  ensure
    server.stop
    assert thread.join(30), "the server did not stop"
  end
end
