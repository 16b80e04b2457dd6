# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# A Sinatra application behind Rondo, as a browser uses it.

require_relative "app_case"

class SinatraTest < AppCase
  APP = File.join(__dir__, "sinatra/config.ru")

  def self.start_server
    ServerProcess.new(APP, env: { "GATE" => gate })
  end

  def test_form_and_redirect
    text = "Grüße & <b>more</b> + 100%"
    response = browser.post("/entries", "text" => text)
    assert_equal "303", response.code
    assert_equal "#{server.url}/", response["location"]
    page = browser.follow
    assert_equal "200", page.code
    assert_includes page.body.dup.force_encoding("UTF-8"), "Grüße &amp; &lt;b&gt;more&lt;/b&gt; + 100%"
  end

  def test_session_lives_in_the_cookie
    assert_equal "signed 0 times", browser.get("/signed").body
    3.times { browser.post("/entries", "text" => "again") }
    assert_equal "signed 3 times", browser.get("/signed").body
    stranger = Browser.new(server.url)
    assert_equal "signed 0 times", stranger.get("/signed").body
  ensure
    stranger&.close
  end

  def test_cookies_are_set_and_deleted
    response = browser.get("/greet/ada")
    assert_equal '{"hello":"ada"}', response.body
    assert_equal "application/json", response["content-type"]
    assert_equal 2, response.get_fields("set-cookie").count { |line| line.match?(/\A(greeted|twice)=/) }
    assert_equal "ada yes", browser.get("/greeted").body
    assert_equal "204", browser.get("/forget").code
    assert_equal " yes", browser.get("/greeted").body
  end

  def test_streamed_parts_leave_at_once
    response, body = read_streamed("/stream", %W[first\n second\n])
    assert_equal "first\nsecond\nlast\n", body
    assert_equal "chunked", response["transfer-encoding"]
    assert_equal "signed 0 times", browser.get("/signed").body, "the connection goes on"
  end

  def test_upload_of_a_hundred_megabytes
    assert_large_upload("/upload")
  end

  def test_upload_of_a_hundred_megabytes_without_a_length
    assert_large_upload("/upload", chunked: true)
  end

  def test_small_upload
    file = MadeUpFile.new(10)
    assert_equal " made up.bin 10 #{file.digest}", browser.upload("/upload", file).body
  end

  def test_url_is_the_one_asked_for
    assert_equal "#{server.url}/somewhere", browser.get("/url").body
    assert_equal "http://shop.example/somewhere", browser.get("/url", "host" => "shop.example").body
  end

  def test_static_file_and_its_revalidation
    response = browser.get("/style.css")
    assert_equal File.read(File.join(__dir__, "sinatra/public/style.css")), response.body
    assert_equal "text/css;charset=utf-8", response["content-type"]
    again = browser.get("/style.css", "if-modified-since" => response["last-modified"])
    assert_equal "304", again.code
  end

  def test_part_of_a_file
    response = browser.get("/download", "range" => "bytes=2-5")
    assert_equal "206", response.code
    assert_equal File.binread(APP)[2..5], response.body
    assert_equal File.size(APP), browser.head("/download")["content-length"].to_i
  end

  def test_errors_are_answered_on_the_same_connection
    assert_equal ["500", "an error: on purpose"], [browser.get("/fails").code, browser.response.body]
    assert_equal ["404", "no such page"], [browser.get("/nowhere").code, browser.response.body]
    response = browser.get("/halts")
    assert_equal %w[418 tea], [response.code, response["x-pot"]]
    assert_equal "200", browser.head("/").code
    assert_equal "200", browser.get("/").code
  end
end

class SinatraClassicTest < AppCase
  APP = File.join(__dir__, "sinatra/classic.ru")

  def self.start_server
    ServerProcess.new(APP)
  end

  def test_routes
    assert_equal ["Hello, you!", "yes"], [browser.get("/hello/you").body, browser.response["x-before"]]
    assert_equal "8", browser.http.put("/numbers/7", "").body
    assert_equal "204", browser.http.delete("/numbers/7").code
    assert_equal "a=b+c", browser.post("/echo", "a" => "b c").body
    assert_equal "404", browser.get("/none").code
  end

  def test_redirect
    assert_equal "307", browser.get("/around").code
    assert_equal "Hello, around!", browser.follow.body
  end

  def test_its_logger_writes_to_the_errors_of_rack
    browser.get("/hello/logger")
    server.wait_for_log(%r{GET /hello/logger})
  end
end
