# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# What the generated Rails application does in every environment, with threads and with fibers.

require "cgi"
require "json"
require_relative "app_case"
require_relative "rails_app"

# A class that includes this has a server.
module RailsBehaviour
  def token_of(page)
    CGI.unescapeHTML(page.body[/name="authenticity_token" value="([^"]+)"/, 1])
  end

  def save(text)
    page = browser.get("/notes/new")
    browser.post("/notes", "note[text]" => text, "authenticity_token" => token_of(page))
  end

  def text_of(response)
    response.body.dup.force_encoding("UTF-8")
  end

  def test_form_with_token_flash_and_redirect
    response = save("Grüße & <b>more</b> + 100%")
    assert_equal "302", response.code
    assert_equal "#{server.url}/notes", response["location"]
    page = text_of(browser.follow)
    assert_includes page, '<p class="notice">Saved: Grüße &amp; &lt;b&gt;more&lt;/b&gt; + 100%</p>'
    assert_includes page, '<p class="note">Grüße &amp; &lt;b&gt;more&lt;/b&gt; + 100%</p>'
    refute_includes text_of(browser.get("/notes")), 'class="notice"', "a flash is shown once"
  end

  def test_form_that_is_not_valid
    response = save("")
    assert_equal "422", response.code
    assert_includes response.body, "can&#39;t be blank"
  end

  def test_form_without_token_is_refused
    browser.get("/notes/new")
    response = browser.post("/notes", "note[text]" => "forged")
    assert_equal "422", response.code
    refute_includes browser.get("/notes").body, "forged"
  end

  def test_json
    save("to be changed")
    id = browser.follow.body.scan(%r{href="/notes/(\d+)"}).last.first
    request = Net::HTTP::Patch.new("/notes/#{id}", "content-type" => "application/json")
    request.body = JSON.generate(text: "changed")
    assert_equal "changed", JSON.parse(browser.http.request(request).body)["text"]
    assert_equal "changed", JSON.parse(browser.get("/notes/#{id}").body)["text"]
    assert_equal "204", browser.http.request(Net::HTTP::Delete.new("/notes/#{id}")).code
    assert_equal "404", browser.get("/notes/#{id}").code
  end

  def test_cookies_and_session
    2.times { browser.get("/remember") }
    assert_equal "302", browser.response.code
    assert_equal "a b,s,e,2", browser.follow.body
    assert_operator browser.cookies.size, :>=, 4
  end

  def test_where_it_is
    assert_equal "#{server.url}/ 127.0.0.1 http:// #{server.port}", browser.get("/where").body
  end

  def test_upload_of_a_hundred_megabytes
    assert_large_upload("/upload")
  end

  def test_send_file
    response = browser.get("/download")
    assert_equal RailsApp::LARGE_BYTES, response["content-length"].to_i
    assert response.body == File.binread(RailsApp.instance.large_file), "the file differs"
    assert_equal "200", browser.head("/download").code
  end

  def test_send_file_in_parts
    file = File.binread(RailsApp.instance.large_file)
    assert_part file[1_000_000, 500], browser.get("/download", "range" => "bytes=1000000-1000499")
    assert_part file[-7..], browser.get("/download", "range" => "bytes=-7")
    assert_equal "416", browser.get("/download", "range" => "bytes=#{RailsApp::LARGE_BYTES}-").code
    assert_equal "bytes */#{RailsApp::LARGE_BYTES}", browser.response["content-range"]
  end

  # Where the redirects end.
  def path_of_the_stored(path)
    path = URI(browser.response["location"]).request_uri while browser.get(path).code == "302"
    path
  end

  def test_active_storage_on_the_disk
    file = File.binread(RailsApp.instance.large_file)
    %w[/stored /stored?proxied=1].each do |start|
      path = path_of_the_stored(start)
      assert_equal "200", browser.response.code
      assert browser.response.body == file, "the file differs"
      known = { "if-none-match" => browser.response["etag"], "if-modified-since" => browser.response["last-modified"] }.compact
      assert_equal "304", browser.get(path, known).code
      assert_part file[1_000_000, 500], browser.get(path, "range" => "bytes=1000000-1000499")
      assert_part file[-7..], browser.get(path, "range" => "bytes=-7")
    end
  end

  def assert_part(expected, response)
    assert_equal "206", response.code
    assert response.body == expected, "the part differs"
  end

  def test_send_data
    assert_equal "a,b\n1,2\n", browser.get("/inline").body
    assert_match(/table\.csv/, browser.response["content-disposition"])
  end

  def test_live
    response, body = read_streamed("/live", %W[first\n second\n])
    assert_equal "first\nsecond\nlast\n", body
    assert_equal "chunked", response["transfer-encoding"]
    assert_equal "200", browser.get("/up").code, "the connection goes on"
  end

  def test_an_enumerated_body
    _, body = read_streamed("/lazy", %W[first\n second\n])
    assert_equal "first\nsecond\nlast\n", body
  end

  def test_server_sent_events
    response = browser.get("/events")
    assert_equal "text/event-stream", response["content-type"]
    assert_equal (0..2).map { |number| "event: tick\ndata: {\"number\":#{number}}\n\n" }.join, response.body
  end

  def test_a_client_that_leaves_a_stream
    leaver = Browser.new(server.url)
    with_gate do |open_gate|
      assert_raises(Interrupt) { leaver.get("/live") { |answer| answer.read_body { raise Interrupt } } }
      leaver.close
      2.times { open_gate.call }
    end
    assert_equal "200", browser.get("/up").code
  end

  def test_static_files
    response = browser.get("/hello.txt")
    assert_equal ["200", "a public file\n"], [response.code, response.body]
    assert_equal "304", browser.get("/hello.txt", "if-modified-since" => response["last-modified"]).code
    assert_equal "206", browser.get("/hello.txt", "range" => "bytes=2-7").code
    assert_equal "public", browser.response.body
    assert_equal "200", browser.head("/hello.txt").code
  end

  def test_conditional_requests
    response = browser.get("/cached")
    assert_equal "cached", response.body
    assert_equal "304", browser.get("/cached", "if-none-match" => response["etag"]).code
  end

  def test_head_and_options_and_unknown_methods
    assert_equal "200", browser.head("/notes").code
    assert_includes %w[200 204 404], browser.http.options("/notes").code
    assert_equal "405", browser.http.send_request("BREW", "/notes").code
    assert_equal "200", browser.get("/up").code
  end

  def test_many_at_once
    browsers = Array.new(8) { Browser.new(server.url) }
    threads = browsers.map { |one| Thread.new { Array.new(10) { one.get("/notes").code } } }
    assert_equal %w[200] * 80, threads.flat_map(&:value)
  ensure
    browsers.each(&:close)
  end
end
