# frozen_string_literal: true

# A plain listener and one with TLS in one server: the values that the application and the log get for each, whichever
# came first.
# SPDX-License-Identifier: MIT

require_relative "rack_case"
require_relative "../../support/certificates"
require "json"
require "tmpdir"
require "timeout"

class RackSchemesTest < RackCase
  KEYS = %w[rack.url_scheme HTTPS SERVER_PORT SERVER_NAME].freeze
  PLAIN = ["http", nil, "80", "h"].freeze
  SECURE = ["https", "on", "443", "h"].freeze
  BROWSER = { "Host" => "h", "Accept" => "text/html", "X-One" => "1" }.freeze

  def setup
    super
    @folder = Dir.mktmpdir("rondo-schemes")
    @pair = Certificates.new(@folder).pair("one")
  end

  def teardown
    super
    FileUtils.remove_entry(@folder)
  end

  # Two clients of one server: of its plain listener, and of the one with TLS.
  def clients(**settings, &app)
    app ||= ->(env) { [200, { "x-seen" => env.values_at(*KEYS).to_json, "x-keys" => env.size.to_s }, []] }
    running = start(app, **settings)
    [connect(running), RawClient.new(listen_securely(running.server)).tap { |client| @clients << client }]
  end

  # The client is plain: what it sends and gets goes over TLS from here on.
  def listen_securely(server)
    port = server.listen("ssl://127.0.0.1:0?#{@pair.query}")[/\d+\z/].to_i
    front = TCPServer.new("127.0.0.1", 0)
    Thread.new { XorProxy::SecurePair.new(front.accept.tap { front.close }, TCPSocket.new("127.0.0.1", port)).run }
    "http://127.0.0.1:#{front.addr[1]}"
  end

  def seen(client, headers = BROWSER)
    response = get(client, "/", headers)
    JSON.parse(response.header("x-seen"))
  end

  # Again and again, so that both caches have a template for each.
  def test_each_listener_has_its_own_scheme
    [{}, { frozen_headers: 1 }].each do |settings|
      plain, secure = clients(**settings)
      5.times do
        assert_equal PLAIN, seen(plain)
        assert_equal SECURE, seen(secure)
        assert_equal SECURE, seen(secure, BROWSER.merge("Cookie" => "a=1")), "without a known section"
      end
      assert_equal ["https", "on", "8443", "h"], seen(secure, BROWSER.merge("Host" => "h:8443"))
    end
  end

  def test_a_secure_env_has_one_key_more
    plain, secure = clients
    sizes = Array.new(4) { [plain, secure].map { |client| get(client, "/", BROWSER).header("x-keys").to_i } }
    assert_equal [1], sizes.map { |one, other| other - one }.uniq
    assert_equal 1, sizes.uniq.size
  end

  def test_fields_are_the_requests_own_on_both
    kept = []
    both = clients do |env|
      env["HTTP_X_ONE"] << "changed"
      kept << env["HTTP_X_ONE"]
      [200, {}, [env["HTTPS"].to_s]]
    end
    4.times { both.each { |client| get(client, "/", BROWSER) } }
    assert_equal ["1changed"], kept.uniq
    assert_equal 8, kept.map(&:object_id).uniq.size
  end

  def test_a_trusted_proxy_knows_better
    plain, secure = clients(trusted_proxies: ["127.0.0.1"])
    said = ->(scheme) { BROWSER.merge("X-Forwarded-Proto" => scheme) }
    3.times do
      assert_equal ["https", nil, "443", "h"], seen(plain, said["https"])
      assert_equal ["http", nil, "80", "h"], seen(secure, said["http"])
      assert_equal [PLAIN, SECURE], [seen(plain), seen(secure)]
    end
  end

  def test_a_setting_knows_better
    plain, secure = clients(url_scheme: "http")
    2.times { assert_equal [PLAIN, PLAIN], [seen(plain), seen(secure)] }
    plain, secure = clients(url_scheme: "https")
    2.times { assert_equal [["https", nil, "443", "h"], SECURE], [seen(plain), seen(secure)] }
  end

  def test_versions_on_a_secure_listener
    _, secure = clients(&->(env) { [200, { "x-seen" => env["SERVER_PROTOCOL"] + env["rack.url_scheme"] }, []] })
    3.times do
      %w[1.0 1.1].each do |version|
        secure.write("GET / HTTP/#{version}\r\nHost: h\r\nAccept: a/b\r\nConnection: keep-alive\r\n\r\n")
        assert_equal "HTTP/#{version}https", secure.response.header("x-seen")
      end
    end
  end

  # The env of an upgraded connection is kept as its difference from a template, and made again from that.
  def test_the_env_of_an_upgraded_connection
    envs = Queue.new
    handler = Object.new
    handler.define_singleton_method(:on_open) { |client| envs << client.env.values_at(*KEYS) }
    app = lambda do |env|
      env["rack.upgrade"] = handler
      [200, {}, []]
    end
    clients(lint: false, &app).each { |client| client.write(bytes("GET", "/", BROWSER.merge("Accept" => "text/event-stream"))) }
    assert_equal [PLAIN, SECURE], Array.new(2) { Timeout.timeout(PATIENCE) { envs.pop } }.sort_by(&:first)
  end

  def test_early_hints_and_the_log
    log = StringIO.new
    both = clients(early_hints: 1, request_log: log) do |env|
      env["rack.early_hints"].call("link" => "</a>")
      [200, {}, []]
    end
    both.each do |client|
      client.write(bytes("GET", "/", BROWSER))
      assert_equal [103, 200], [client.response(interim: true).status, client.response.status]
    end
    @running.each(&:stop)
    assert_equal 2, log.string.scan('"GET / HTTP/1.1" 200').size
  end
end
