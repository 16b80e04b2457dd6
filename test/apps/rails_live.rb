# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# ActionController::Live on the server's own streams, and actions that are streams of events.

require "support/raw_client"
require_relative "rails_app"

module RailsLive
  STREAMS = 15 # as test/apps/rails/config/initializers/live.rb says

  def teardown
    (@clients || []).each(&:close)
    super
  end

  def request_stream(path, fields = {})
    head = { "Host" => URI(server.url).authority, **fields }.map { |name, value| "#{name}: #{value}\r\n" }.join
    RawClient.open(server.url).tap do |client|
      (@clients ||= []) << client
      client.write("GET #{path} HTTP/1.1\r\n#{head}\r\n")
    end
  end

  # @param ending [String, Regexp]
  def read_up_to(client, ending)
    seen = +""
    seen << (client.read_some || flunk("ended after #{seen.inspect}")) until seen.index(ending)
    seen
  end

  def release(visitor)
    assert_equal "200", browser.get("/release?name=#{visitor}").code
  end

  # In development a request that finds code changed waits for actions that use the old one.
  def hold(count)
    assert_equal "200", browser.get("/up").code # code that was changed is loaded anew
    Array.new(count) { |number| ["#{name}-#{number}", request_stream("/held?name=#{name}-#{number}")] }
  end

  # More streams than threads, each in the middle of its action.
  def test_streams_hold_no_thread_and_keep_their_state
    held = hold(STREAMS)
    held.each { |visitor, client| read_up_to(client, "#{visitor} true\n") }
    20.times { |number| assert_equal "nil guest#{number}", browser.get("/visitor?name=guest#{number}").body }
    held.to_h.each_key { |visitor| release(visitor) }
    held.each do |visitor, client|
      assert_includes read_up_to(client, "0\r\n\r\n"), "#{visitor} still #{visitor}\n"
      assert_equal 200, client.request("GET /up HTTP/1.1\r\nHost: #{URI(server.url).authority}\r\n\r\n").status
    end
  end

  # One more than the setting says keeps the thread of its request, as Rails does it.
  def test_streams_that_are_too_many
    held = hold(STREAMS + 1).to_h
    taken = held.map { |visitor, client| read_up_to(client, /^#{visitor} (\w+)$/)[/^#{visitor} (\w+)$/, 1] }
    assert_equal [1, STREAMS], taken.tally.values_at("false", "true"), taken.inspect
    held.each_key { |visitor| release(visitor) }
    held.each { |visitor, client| assert_includes read_up_to(client, "0\r\n\r\n"), "#{visitor} still " }
  end

  def test_an_action_that_writes_nothing
    assert_equal ["200", ""], [browser.get("/live/silent").code, browser.response.body.to_s]
  end

  # Before its first line an action keeps the thread of its request, which knows no status yet. A client that has left
  # is noticed by the first line.
  # In development code that a test has changed is loaded anew by the next request, which waits for all others: not by
  # one of those that do not end.
  def test_actions_that_say_nothing_and_do_not_end
    browser.get("/up")
    names = Array.new(3) { |number| "mute #{number} #{name}".tr(" ", "-") }
    clients = names.map { |visitor| request_stream("/live/mute?name=#{visitor}") }
    names.each { |visitor| server.wait_for_log(/#{visitor} says nothing/) }
    assert_equal "nil guest", browser.get("/visitor?name=guest").body
    clients.each(&:reset)
    assert_equal "nil guest", browser.get("/visitor?name=guest").body
    names.each do |visitor|
      release(visitor)
      server.wait_for_log(/#{visitor}: client disconnected/)
    end
  end

  def test_an_action_that_fails_before_the_head
    assert_equal "500", browser.get("/live/early").code
    server.wait_for_log(/on purpose/)
  end

  def test_an_action_that_fails_after_the_head
    response = browser.get("/live/late")
    assert_equal ["200", "begun\n"], [response.code, response.body]
    server.wait_for_log(/too late, on purpose/)
  end

  def test_an_action_that_writes_after_the_end
    assert_equal "begun\n", browser.get("/live/closed").body
    server.wait_for_log(/after the end: closed stream/)
  end

  def test_parts_before_and_after_the_head_keep_their_order
    assert_equal Array.new(100) { |number| "#{number}\n" }.join, browser.get("/live/sized").body
  end

  def test_a_client_that_leaves_an_endless_action
    client = request_stream("/live/endless?name=#{name}")
    read_up_to(client, "line\n")
    client.reset
    server.wait_for_log(/#{name}: client disconnected/)
  end

  # Rails removes the files of a form when the thread of its request is done.
  def test_the_file_of_a_form
    body = "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\n" \
           "what is in it\r\n--B--\r\n"
    assert_equal "200", browser.get("/up").code
    client = RawClient.open(server.url)
    (@clients ||= []) << client
    client.write("POST /live/file?name=#{name} HTTP/1.1\r\nHost: #{URI(server.url).authority}\r\nContent-Length: #{body.bytesize}\r\n" \
                 "Content-Type: multipart/form-data; boundary=B\r\n\r\n#{body}")
    read_up_to(client, "begun\n")
    assert_equal "200", browser.get("/up").code
    release(name)
    assert_includes read_up_to(client, "0\r\n\r\n"), "what is in it"
  end

  # ---- streams of events ----

  def events(query, fields = {})
    request_stream("/news?#{query}", { "Accept" => "text/event-stream", **fields })
  end

  def announce(channel, text)
    assert_equal "200", browser.get("/announce?channel=#{channel}&text=#{text}").code
  end

  def test_an_action_that_is_a_stream_of_events
    announce(name, "first")
    reader = events("channel=#{name}&since=0")
    head, first = read_up_to(reader, "\n\n").split("\r\n\r\n", 2)
    ["HTTP/1.1 200 ", "content-type: text/event-stream\r", "set-cookie: "].each { |line| assert_match(/^#{line}/, head) }
    first << read_up_to(reader, "\n\n") unless first.include?("\n\n")
    assert_match(/\Aid: \d+\ndata: first\n\n\z/, first)
    %w[second third].each { |text| announce(name, text) }
    last = read_up_to(reader, "third\n\n")
    again = events("channel=#{name}", "Last-Event-ID" => last[/^id: (\d+)\ndata: second/, 1])
    assert_match(/\r\n\r\nid: \d+\ndata: third\n\n\z/, read_up_to(again, "third\n\n"))
  end

  def test_a_request_that_is_no_event_source
    assert_equal "406", browser.get("/news?channel=a").code
  end
end
