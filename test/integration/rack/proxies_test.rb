# frozen_string_literal: true

# Trusted proxies: the effect of X-Forwarded-* or Forwarded, and that by default no peer is trusted. forwarded_test.rb
# uses real proxies.
# SPDX-License-Identifier: MIT

require_relative "rack_case"

class RackProxiesTest < RackCase
  KEYS = %w[REMOTE_ADDR rack.url_scheme SERVER_NAME SERVER_PORT HTTP_HOST].freeze
  LISTED = ["127.0.0.0/8"].freeze

  def seen(headers, trusted: LISTED, **options)
    values = nil
    options[:trusted_proxies] = trusted if trusted
    client = serve(**options) do |env|
      values = env.slice(*KEYS)
      [200, {}, []]
    end
    assert_equal 200, get(client, "/", headers).status
    values
  end

  ALL = { "X-Forwarded-For" => "203.0.113.7", "X-Forwarded-Proto" => "https", "X-Forwarded-Host" => "evil.example",
          "X-Forwarded-Port" => "8443", "X-Forwarded-Scheme" => "https", "X-Forwarded-Ssl" => "on",
          "Forwarded" => "for=203.0.113.8;proto=https;host=evil.example", "X-Real-Ip" => "203.0.113.9" }.freeze
  PLAIN = { "REMOTE_ADDR" => "127.0.0.1", "rack.url_scheme" => "http", "SERVER_NAME" => "test.example",
            "SERVER_PORT" => "80", "HTTP_HOST" => "test.example" }.freeze

  def test_nobody_is_believed_by_default
    assert_equal PLAIN, seen(ALL, trusted: nil)
    assert_equal PLAIN, seen(ALL, trusted: [])
  end

  def test_others_than_the_listed_are_not_believed
    assert_equal PLAIN, seen(ALL, trusted: ["10.0.0.0/8", "192.0.2.1", "::1"])
  end

  def test_peers_of_a_unix_socket
    skip "needs a client that sends a PROXY header before the handshake, and the XOR proxy sends none" if XorProxy.on?
    { ["unix"] => "203.0.113.7", ["127.0.0.1"] => "127.0.0.1" }.each do |trusted, address|
      running = start(trusted_proxies: trusted) { |env| [200, {}, [env["REMOTE_ADDR"]]] }
      name = "unix://@rondo-proxies-#{Process.pid}-#{trusted.first}"
      running.server.listen(name)
      client = RawClient.new(name.sub("@", "\0"))
      @clients << client
      assert_equal address, get(client, "/", ALL).body
    end
  end

  def test_the_fields_themselves_always_reach_the_application
    env = nil
    client = serve do |given|
      env = given
      [200, {}, []]
    end
    get(client, "/", ALL)
    assert_equal "203.0.113.7", env["HTTP_X_FORWARDED_FOR"]
    assert_equal "https", env["HTTP_X_FORWARDED_PROTO"]
  end

  def test_address
    assert_equal "203.0.113.7", seen({ "X-Forwarded-For" => "203.0.113.7" })["REMOTE_ADDR"]
    assert_equal "2001:db8::1", seen({ "X-Forwarded-For" => "2001:db8::1" })["REMOTE_ADDR"]
  end

  def test_the_nearest_address_that_is_no_proxy_counts
    assert_equal "203.0.113.7", seen({ "X-Forwarded-For" => "1.1.1.1, 203.0.113.7, 127.0.0.9" })["REMOTE_ADDR"]
    assert_equal "203.0.113.7", seen({ "X-Forwarded-For" => ["1.1.1.1", "203.0.113.7"] })["REMOTE_ADDR"]
  end

  def test_only_proxies_in_the_list
    assert_includes %w[127.0.0.1 127.0.0.8], seen({ "X-Forwarded-For" => "127.0.0.8, 127.0.0.9" })["REMOTE_ADDR"]
  end

  def test_no_address_at_all
    ["unknown", "", "evil\", for=\"x", "999.1.1.1", "a" * 500, ", ,", "1.1.1.1 2.2.2.2"].each do |text|
      assert_equal "127.0.0.1", seen({ "X-Forwarded-For" => text })["REMOTE_ADDR"], text
    end
  end

  def test_an_invalid_address_hides_what_is_left_of_it
    assert_equal "127.0.0.1", seen({ "X-Forwarded-For" => "1.1.1.1, unknown" })["REMOTE_ADDR"]
  end

  def test_scheme
    values = seen({ "X-Forwarded-Proto" => "https" })
    assert_equal %w[https 443], values.values_at("rack.url_scheme", "SERVER_PORT")
    values = seen({ "X-Forwarded-Proto" => "http" })
    assert_equal %w[http 80], values.values_at("rack.url_scheme", "SERVER_PORT")
  end

  def test_schemes_nobody_knows
    ["ftp", "javascript", "https\"", "", "httpss"].each do |scheme|
      assert_equal "http", seen({ "X-Forwarded-Proto" => scheme })["rack.url_scheme"], scheme
    end
  end

  def test_port
    assert_equal "8443", seen({ "X-Forwarded-Port" => "8443" })["SERVER_PORT"]
    values = seen({ "X-Forwarded-Port" => "8443", "X-Forwarded-Proto" => "https" })
    assert_equal %w[https 8443], values.values_at("rack.url_scheme", "SERVER_PORT")
  end

  def test_ports_that_are_none
    ["0", "65536", "-1", "80x", "", "9" * 40].each do |port|
      assert_equal "80", seen({ "X-Forwarded-Port" => port })["SERVER_PORT"], port
    end
  end

  def test_the_port_of_host_stays_without_a_forwarded_one
    values = seen({ "Host" => "test.example:3000", "X-Forwarded-Proto" => "https" })
    assert_equal %w[https 3000], values.values_at("rack.url_scheme", "SERVER_PORT")
  end

  def seen_in_forwarded(text, **headers)
    seen({ "Forwarded" => text, **headers }, trusted_proxy_fields: :forwarded)
  end

  def test_forwarded
    values = seen_in_forwarded("for=203.0.113.7;proto=https;by=10.0.0.1")
    assert_equal %w[203.0.113.7 https], values.values_at("REMOTE_ADDR", "rack.url_scheme")
    assert_equal "2001:db8::1", seen_in_forwarded('For="[2001:db8::1]:4711"')["REMOTE_ADDR"]
    assert_equal "203.0.113.7", seen_in_forwarded("for=1.1.1.1, for=203.0.113.7")["REMOTE_ADDR"]
  end

  def test_only_the_fields_of_the_setting_are_believed
    assert_equal PLAIN, seen(ALL.slice("Forwarded"))
    assert_equal PLAIN.merge("REMOTE_ADDR" => "203.0.113.7", "rack.url_scheme" => "https", "SERVER_PORT" => "8443"), seen(ALL)
    assert_equal PLAIN, seen(ALL.except("Forwarded"), trusted_proxy_fields: :forwarded)
    assert_equal PLAIN.merge("REMOTE_ADDR" => "203.0.113.8", "rack.url_scheme" => "https", "SERVER_PORT" => "443"),
                 seen(ALL, trusted_proxy_fields: :forwarded)
  end

  def test_forwarded_that_is_nonsense
    ["for", "for=", "for=\"", "for=unknown", "for=_hidden", "=;=,;", ";;;", "for=\"\\\"", "proto=https;for=\"x"].each do |text|
      assert_equal "127.0.0.1", seen_in_forwarded(text)["REMOTE_ADDR"], text
    end
  end

  def test_each_request_of_a_connection_on_its_own
    values = []
    client = serve(trusted_proxies: LISTED) do |env|
      values << env.values_at("REMOTE_ADDR", "rack.url_scheme", "SERVER_PORT")
      [200, {}, []]
    end
    get(client, "/", "X-Forwarded-For" => "203.0.113.7", "X-Forwarded-Proto" => "https")
    get(client)
    get(client, "/", "X-Forwarded-For" => "203.0.113.8")
    assert_equal [%w[203.0.113.7 https 443], %w[127.0.0.1 http 80], %w[203.0.113.8 http 80]], values
  end

  def test_a_forced_scheme
    assert_equal "https", seen({ "X-Forwarded-Proto" => "gopher" }, url_scheme: "https")["rack.url_scheme"]
  end

  def test_a_list_that_is_wrong
    error = assert_raises(Rondo::SettingError) { Rondo::Server.new(->(_) {}, trusted_proxies: ["10.0.0.0/99"]) }
    refute_includes error.message, "\n"
  end
end
