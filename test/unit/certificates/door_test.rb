# frozen_string_literal: true

# Port 80: which socket it is, what it answers, and that it outlives the program. What the thread does with requests:
# test/core/control/test_redirect.c.
# SPDX-License-Identifier: MIT

require "test_helper"
require "net/http"
require "rondo/certificates/keeping"
require "rondo/config/binds"
require "rondo/config/settings"
require "support/certificates"
require "support/held_port"
require "tmpdir"

class CertificatesDoorTest < Minitest::Test
  Door = Rondo::Certificates::Door
  Inherited = Rondo::Inherited
  TOKENS = "webroot/.well-known/acme-challenge"

  def setup
    @root = Dir.mktmpdir
    @held = HeldPort.new
    @doors = []
    @lines = StringIO.new
  end

  def teardown
    @doors.each(&:close)
    @held.close
    FileUtils.rm_rf(@root)
  end

  def settings(**more)
    given = { host: "127.0.0.1", tls_domain: ["app.example.com"], tls_storage: File.join(@root, "acme"), tls_port: 8443,
              tls_http_port: @held.number, tls_directory: "https://127.0.0.1:1/dir", **more }
    Rondo::Settings::Resolved.new(given.transform_values { |value| [value, "test"] })
  end

  def door(inherited = nil, **more)
    all = settings(**more)
    Door.for_settings(Rondo::Certificates::Domains.from(all), all, inherited).tap { |door| @doors << door if door }
  end

  def get(path, port = @held.number)
    Net::HTTP.get_response(URI("http://127.0.0.1:#{port}#{path}"))
  end

  def redirects?(port = @held.number)
    answer = get("/a?b", port)
    [answer.code, answer["location"]] == ["308", "https://127.0.0.1:8443/a?b"]
  end

  def put(token)
    File.write(File.join(@root, "acme", TOKENS, token), "#{token}.hash")
  end

  def test_tokens_and_redirects
    found = door
    assert_equal ["http://127.0.0.1:#{@held.number}"], found.urls
    refute_predicate found, :foreign?
    assert redirects?
    put("token-1")
    assert_equal "token-1.hash", get("/.well-known/acme-challenge/token-1").body
    assert_equal "404", get("/.well-known/acme-challenge/token-2").code
    assert_equal 0o700, File.stat(File.join(@root, "acme")).mode & 0o777
    found.close
    assert_raises(Errno::ECONNREFUSED) { get("/") }
    found.close
  end

  def test_none_is_wanted
    assert_nil door(tls_http_port: 0)
    assert_empty Dir.children(@root)
  end

  def test_all_addresses_of_localhost
    skip "an IPv6 loopback is missing" unless Socket.ip_address_list.any?(&:ipv6_loopback?)
    found = door(host: "localhost")
    assert_equal %W[http://127.0.0.1:#{@held.number} http://[::1]:#{@held.number}].sort, found.urls.sort
    assert_equal "308", Net::HTTP.get_response(URI("http://[::1]:#{@held.number}/")).code
  end

  def test_a_port_that_somebody_has
    TCPServer.open("127.0.0.1", 0) do |taken|
      port = taken.addr[1]
      error = assert_raises(Rondo::AddressError) { door(tls_http_port: port) }
      assert_match(/127\.0\.0\.1:#{port}.* already in use by process #{Process.pid}/, error.message)
      all = settings(tls_http_port: port)
      assert_nil Door.try(Rondo::Certificates::Domains.from(all), all)
    end
  end

  def test_a_folder_that_cannot_be_made
    File.write(File.join(@root, "acme"), "")
    assert_match(/\Acannot make /, assert_raises(Rondo::Certificates::Failed) { door }.message)
    assert_raises(Errno::ECONNREFUSED) { get("/") }
  end

  # ---- sockets from elsewhere ----

  # @return [Array(String, Integer)] as the environment has it
  def socket
    server = TCPServer.new("127.0.0.1", @held.number)
    server.autoclose = false
    ["tcp://127.0.0.1:#{@held.number}", server.fileno]
  end

  def test_the_socket_of_systemd
    found = door(Inherited.new([], [socket]))
    assert_predicate found, :foreign?
    assert redirects?
    assert_equal ["http://127.0.0.1:#{@held.number}"], found.descriptors.map(&:first)
  end

  def test_the_socket_of_the_program_before
    refute_predicate door(Inherited.new([socket])), :foreign?
    assert redirects?
  end

  def test_a_socket_of_another_port_is_left_alone
    other = TCPServer.new("127.0.0.1", 0)
    inherited = Inherited.new([["tcp://127.0.0.1:#{other.addr[1]}", other.fileno]])
    door(inherited)
    assert redirects?
    refute_predicate other, :closed?
  ensure
    other.close
  end

  # ---- a restart by exec ----

  # Nothing is due: no process is started.
  def keeping(inherited = Inherited.new([]))
    pair = Certificates.new(@root).pair("server", names: ["DNS:app.example.com"])
    Rondo::Certificates::Store.new(File.join(@root, "acme"))
                              .keep("app.example.com", File.read(pair.certificate), File.read(pair.key))
    log = Rondo::Logger.new(io: @lines)
    Rondo::Certificates::Keeping.open(settings, inherited, log, secrets: {}) { nil }.tap { |made| @doors << made }
  end

  # Who comes while there is no program is answered by the next one, and nobody is refused.
  def test_clients_wait_while_the_program_is_replaced
    first = keeping
    first.start
    held = first.rest
    assert_equal [false], (held.map { |_, io| io.close_on_exec? })
    client = TCPSocket.new("127.0.0.1", @held.number)
    client.write("GET /x HTTP/1.1\r\nhost: a.example\r\n\r\n")
    first.go_on
    assert_match(%r{\AHTTP/1\.1 308 .*^location: https://a\.example/x\r}m, client.read)
    assert redirects?
    first.rest
    first.go_on # again
    assert redirects?
  ensure
    client&.close
  end

  def test_the_socket_of_systemd_stays_one
    first = keeping(Inherited.new([], [socket]))
    first.start
    2.times do
      assert_equal ["http://127.0.0.1:#{@held.number}"], first.foreign
      first.rest
      first.go_on
    end
    assert redirects?
  end
end
