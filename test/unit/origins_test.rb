# frozen_string_literal: true

# Which origins may open a WebSocket, whatever they send.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"

class OriginsTest < Minitest::Test
  def allow?(allowed, origin, trusted: false, by: :x_forwarded, **fields)
    env = { "HTTP_HOST" => "app.example:8080" }.merge(fields.transform_keys(&:to_s))
    env["HTTP_ORIGIN"] = origin.b if origin
    Rondo::Origins.new(allowed, fields: by).allow?(env, trusted)
  end

  def assert_only(good, bad, allowed, **fields)
    good.each { |origin| assert allow?(allowed, origin, **fields), origin }
    bad.each { |origin| refute allow?(allowed, origin, **fields), origin }
  end

  def test_everybody
    assert_nil Rondo::Origins.from(nil)
  end

  def test_who_says_nothing_is_no_browser
    [:same, [], ["https://a.example"]].each { |allowed| assert allow?(allowed, nil) }
  end

  HOSTILE = ["", " ", "null", "https://", "://app.example:8080", "//app.example:8080", "app.example:8080",
             "https://app.example:8080.evil.example", "https://evil.example/https://app.example:8080",
             "https://app.example:8080@evil.example", "https://evil.example#app.example:8080",
             "https://evil.example?app.example:8080", "https://evil.example\\app.example:8080",
             "https://app.example:8080/", "https://app.example:8080 ", "https://app.example:8080\n",
             "https://xapp.example:8080", "https://app.example:80800", "https://app.example", "https://app.example:",
             "https://app.example:8080, https://evil.example", "https://app.example.:8080", "https://app.ex\xffample:8080",
             "https://app.example\u00e9:8080", "https://[::1", "https://#{"a" * 100_000}"].freeze

  def test_the_same_host
    assert_only %w[https://app.example:8080 http://app.example:8080 HTTPS://APP.Example:8080], HOSTILE, :same
  end

  def test_a_ports_default_is_as_good_as_the_port
    assert_only %w[https://a.example https://a.example:443 http://a.example:443], %w[http://a.example https://a.example:80],
                :same, HTTP_HOST: "a.example:443"
    assert_only %w[https://a.example http://a.example], %w[https://a.example:8443 https://b.example], :same, HTTP_HOST: "A.example"
    assert_only %w[http://[::1]:9292], %w[http://[::2]:9292 http://[::1]], :same, HTTP_HOST: "[::1]:9292"
  end

  def test_without_a_host_nothing_is_the_same
    assert_only [], ["https://", "https://a", ""], :same, HTTP_HOST: nil
    assert_only [], ["https://a.example"], :same, HTTP_HOST: "a.example/x"
  end

  def test_what_proxies_say_that_are_trusted
    fields = { HTTP_X_FORWARDED_HOST: "www.example, inner.example:81" }
    assert_only %w[https://www.example http://inner.example:81], %w[https://app.example:8080 https://evil.example], :same,
                trusted: true, **fields
    assert_only %w[https://app.example:8080], %w[https://www.example], :same, **fields
    assert_only %w[https://app.example:8080], %w[https://www.example], :same, trusted: true, by: :forwarded, **fields
  end

  def test_what_proxies_say_in_forwarded
    fields = { HTTP_FORWARDED: "for=1.2.3.4;Host=\"www.example:444\";xhost=x, for=5.6.7.8" }
    assert_only %w[https://www.example:444], %w[https://www.example https://app.example:8080 https://x], :same,
                trusted: true, by: :forwarded, **fields
    assert_only %w[https://app.example:8080], %w[https://www.example:444], :same, trusted: true, **fields
    assert_only %w[https://app.example:8080], %w[https://www.example], :same, trusted: true, by: :forwarded,
                                                                              HTTP_FORWARDED: "for=1.2.3.4"
  end

  def test_a_list
    list = ["https://www.example", "http://localhost:3000", "app://shell"]
    assert_only list + ["https://WWW.example:443"], HOSTILE + %w[http://www.example https://localhost:3000 http://localhost], list
    assert_only ["null", "https://a.example"], ["", "NULL:"], ["null", "https://a.example"]
    assert_only %w[https://app.example:8080 https://b.example], HOSTILE, [:same, "https://b.example"]
    assert_only ["https://a.example"], ["https://b.example"], "https://a.example"
  end

  def test_subdomains
    assert_only %w[https://a.example.com https://a.b.EXAMPLE.com https://a.example.com:443],
                HOSTILE + %w[https://example.com https://.example.com https://*.example.com http://a.example.com
                             https://a.example.com:444 https://aexample.com https://a.example.com.evil.example
                             https://evil.example/.example.com], "https://*.example.com"
    assert_only %w[http://a.localhost:3000], %w[http://localhost:3000 http://a.localhost], ["http://*.localhost:3000"]
  end

  def test_whatever_is_called
    seen = []
    callable = ->(env) { seen << env["HTTP_ORIGIN"] && env["HTTP_ORIGIN"] == "odd" }
    assert_only ["odd"], [nil, "https://a.example"], callable
    assert_equal ["odd", nil, "https://a.example"], seen
  end

  def test_what_is_no_origin
    ["example.com", "https://example.com/", "https://*", "*", "https://a.*.com", "", "https://*.example.com/x", :all, 5].each do |entry|
      error = assert_raises(Rondo::SettingError, entry.inspect) { Rondo::Origins.new([entry]) }
      assert_match(/\Aallowed_origins: .* is not an origin/, error.message)
    end
  end
end
