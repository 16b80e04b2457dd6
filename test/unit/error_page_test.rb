# frozen_string_literal: true

# The page for an exception shows what happened and runs no code.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"

class ErrorPageTest < Minitest::Test
  def page(message, path = "/", backtrace: ["a.rb:1:in `x'"])
    error = RuntimeError.new(message)
    error.set_backtrace(backtrace)
    status, headers, body = Rondo::ErrorPage.call(error, "REQUEST_METHOD" => "GET", "PATH_INFO" => path)
    assert_equal [500, "text/html; charset=utf-8"], [status, headers["content-type"]]
    assert_predicate body.join, :valid_encoding?
    body.join
  end

  def test_what_it_says
    text = page("no luck", "/a/b")
    assert_includes text, "<title>RuntimeError: no luck</title>"
    assert_includes text, "<p>GET /a/b</p>"
    assert_includes text, "a.rb:1:in `x'"
  end

  def test_everything_is_escaped
    text = page("<script>alert(\"&\")</script>", "/<img>", backtrace: ["<eval>:1"])
    assert_includes text, "RuntimeError: &lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;"
    assert_includes text, "GET /&lt;img&gt;"
    assert_includes text, "&lt;eval&gt;:1"
    refute_match(/<(script|img|eval)/, text)
  end

  def test_bytes_of_no_encoding
    assert_includes page("ü\xff", "/\xC3\xBC\xff".b, backtrace: ["\xfe.rb:1".b, "ü.rb:1"]), "ü\u{fffd}"
  end

  def test_no_backtrace
    assert_includes page("x", backtrace: nil), "RuntimeError: x"
  end
end
