# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Turbo Streams in a real browser, by Action Cable and by streams of events.

require "support/browser"
require_relative "rails_app"

module RailsTurbo
  LINES = "[...document.querySelectorAll('#log li')].map(line => line.textContent)"
  CONNECTED = {
    "cable" => "document.querySelector('turbo-cable-stream-source')?.hasAttribute('connected')",
    "events" => "document.querySelector('turbo-stream-source')?.streamSource?.readyState === EventSource.OPEN"
  }.freeze

  def open_turbo(room, how)
    page = Chromium.shared.open("#{server.url}/turbo?#{URI.encode_www_form(room: room, by: how)}")
    (@turbo_pages ||= []) << page
    page.wait_for(CONNECTED.fetch(how))
    page
  end

  def teardown
    @turbo_pages&.each(&:close)
    super
  end

  # @param by [Browser] of the server that says it
  def say_to(room, *texts, by: browser)
    assert_equal texts.size.to_s, by.get("/turbo/say?#{URI.encode_www_form("room" => room, "text[]" => texts)}").body
  end

  def assert_lines(lines, page)
    page.wait_for("#{LINES}.length >= #{lines.size}")
    assert_equal lines, page.run(LINES)
  end

  def source_of(room, as: "text/event-stream")
    page = browser.get("/turbo?#{URI.encode_www_form(room: room, by: "events")}").body
    path = CGI.unescapeHTML(page[/<turbo-stream-source src="([^"]+)">/, 1])
    [path, { "accept" => as }]
  end

  def test_turbo_by_a_websocket_and_by_events
    skip "chromium is not installed" unless Chromium.find
    pages = %w[cable events].map { |how| open_turbo(name, how) }
    say_to(name, "Grüße", "<b>two</b>", "three\nlines\nof text")
    pages.each { |page| assert_lines(["Grüße", "<b>two</b>", "three\nlines\nof text"], page) }
    assert_equal [[], []], pages.map(&:errors)
  end

  def test_streams_that_turbo_does_not_have
    path, fields = source_of(name)
    assert_equal "404", browser.get(path.sub("stream=", "stream=x"), fields).code
    assert_equal "404", browser.get("/turbo-events", fields).code
    assert_equal "404", browser.get("/turbo-events?stream=%FF%00", fields).code
    assert_equal "406", browser.get(path, "accept" => "text/html").code
  end
end
