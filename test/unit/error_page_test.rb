# frozen_string_literal: true

# The answer to an exception in development shows what happened and where, and runs no code.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "rondo"
require "tmpdir"

class ErrorPageTest < Minitest::Test
  BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

  def setup
    @root = File.realpath(Dir.mktmpdir)
  end

  def teardown
    FileUtils.rm_rf(@root)
  end

  def page(message, path = "/", backtrace: ["a.rb:1:in `x'"], accept: BROWSER, type: "html")
    error = RuntimeError.new(message)
    error.set_backtrace(backtrace)
    env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => path, "HTTP_ACCEPT" => accept }
    status, headers, body = Rondo::ErrorPage.call(error, env, root: @root)
    assert_equal [500, "text/#{type}; charset=utf-8"], [status, headers["content-type"]]
    assert_predicate body.join, :valid_encoding?
    body.join
  end

  def write(name, text)
    path = File.join(@root, name)
    FileUtils.mkdir_p(File.dirname(path))
    File.binwrite(path, text)
    path
  end

  def test_what_it_says
    text = page("no luck", "/a/b")
    assert_includes text, "<title>RuntimeError: no luck</title>"
    assert_includes text, "<p>GET /a/b</p>"
    assert_includes text, "a.rb:1:in `x&#39;"
    assert_includes text, "color-scheme: light dark"
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

  def test_clients_that_ask_for_no_html_get_text_without_sources
    path = write("app.rb", "secret = 1\n")
    [nil, "*/*", "application/json"].each do |accept|
      text = page("<b>", accept: accept, type: "plain", backtrace: ["#{path}:1:in `x'"])
      assert_equal "RuntimeError: <b>\nGET /\n\n#{path}:1:in `x'\n", text
    end
  end

  # ---- sources ----

  def test_the_lines_around_the_first_place_of_the_application
    path = write("app/models/a.rb", (1..20).map { |number| "line <#{number}>\n" }.join)
    text = page("x", backtrace: ["#{RbConfig::CONFIG["rubylibdir"]}/json.rb:3", "(eval):1", "#{path}:9:in `x'", "#{path}:2"])
    assert_includes text, "<h2>app/models/a.rb:9</h2>"
    assert_includes text, "<b>    9  line &lt;9&gt;</b>"
    assert_equal (4..14).map(&:to_s), text.scan(/^(?:.*<pre>|<b>)? +(\d+)  line/).flatten
  end

  def test_a_relative_path_and_the_edges_of_a_file
    write("config.ru", "run 1\nraise\n")
    assert_includes page("x", backtrace: ["config.ru:2:in `x'"]), "    1  run 1\n<b>    2  raise</b></pre>"
    assert_includes page("x", backtrace: ["config.ru:1"]), "<pre><b>    1  run 1</b>\n    2  raise</pre>"
    [0, 3, 99_999_999].each { |number| refute_includes page("x", backtrace: ["config.ru:#{number}"]), "<h2>" }
  end

  def test_other_files_are_never_shown
    write("secrets.yml", "secret: 1\n")
    write("vendor/bundle/ruby/gems/a.rb", "secret = 1\n")
    write("large.rb", "secret = 1\n" * 100_000)
    File.symlink("/etc/passwd", File.join(@root, "passwd.rb"))
    File.mkfifo(File.join(@root, "pipe.rb"))
    Dir.mkdir(File.join(@root, "folder.rb"))
    places = %w[secrets.yml:1 vendor/bundle/ruby/gems/a.rb:1 large.rb:1 passwd.rb:1 pipe.rb:1 folder.rb:1 ../../etc/passwd:1
                /etc/passwd:1 nowhere.rb:1] << "a\0b.rb:1" << "#{__FILE__}:1"
    places.each { |place| refute_match(/<h2>/, page("x", backtrace: [place]), place) }
  end

  def test_odd_bytes_and_long_lines
    write("odd.rb", "\xff<\x00\n#{"x" * 10_000}\n")
    text = page("x", backtrace: ["odd.rb:2"])
    assert_includes text, "    1  \u{fffd}&lt;"
    assert_includes text, "<b>    2  #{"x" * 200}</b>"
  end
end
