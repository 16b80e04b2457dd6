# frozen_string_literal: true

# The chat of the examples in a real browser: two people, workers, restarts, history, and the event
# stream that stands in for a WebSocket. RONDO_SCREENSHOT=FILE takes the picture of the README.
# SPDX-License-Identifier: MIT

require "test_helper"
require "net/http"
require "support/browser"
require "support/server_process"

class ChatTest < Minitest::Test
  CHAT = File.expand_path("../../examples/chat/config.ru", __dir__)
  LINES = "[...document.querySelectorAll('#log li')].map(line => line.querySelector('b').textContent + ': ' + " \
          "line.lastChild.textContent)"

  def setup
    skip "chromium is not installed" unless Chromium.find
    @pages = []
  end

  def teardown
    @pages.each(&:close)
  end

  def chat(*args, &block)
    ServerProcess.run(CHAT, args: args, &block)
  end

  def enter(server, nick, query = "")
    page = Chromium.shared.open("#{server.url}/#{query}")
    @pages << page
    connected(page, query.include?("sse") ? "event stream" : "WebSocket")
    page.run("document.getElementById('nick').value = #{nick.to_json}")
    page
  end

  def connected(page, how)
    page.wait_for("document.getElementById('state').textContent == #{how.to_json}")
  end

  def say(page, text)
    page.run("document.getElementById('text').value = #{text.to_json}; document.querySelector('form').requestSubmit()")
  end

  def sees(page, *lines)
    page.wait_for("#{LINES}.length >= #{lines.size}")
    assert_equal lines, page.run(LINES)
  end

  def test_two_people_a_restart_and_a_reload
    chat("-w", "2") do |server|
      ada, bob = enter(server, "Ada"), enter(server, "Bob")
      other = enter(server, "Eve", "?room=elsewhere")
      say(ada, "Is anybody here?")
      sees(bob, "Ada: Is anybody here?")
      say(bob, "Me. <b>Hello</b> & welcome ☕")
      lines = ["Ada: Is anybody here?", "Bob: Me. <b>Hello</b> & welcome ☕"]
      [ada, bob].each { |page| sees(page, *lines) }
      [ada, bob].each { |page| page.run("window.before = send") }
      replace_workers(server)
      [ada, bob].each { |page| page.wait_for("send && send != before") } # back at workers of the new generation
      say(ada, "Still here?")
      [ada, bob].each { |page| sees(page, *lines, "Ada: Still here?") }
      late = enter(server, "Late")
      sees(late, *lines, "Ada: Still here?")
      picture(bob)
      sees(other)
      assert_equal [[]] * 3, [ada, bob, late].map(&:errors)
    end
  end

  # A page may first be back at a worker that is replaced next.
  def replace_workers(server)
    server.wait_for_log(/(?:booted.*){2}/m)
    old = server.log.scan(/Worker \d+ \(PID: (\d+)\) booted/).flatten
    server.signal("USR1")
    server.wait_for_log(/(?:booted.*){#{2 * old.size}}/m)
    Timeout.timeout(60) { sleep 0.01 while old.any? { |pid| File.exist?("/proc/#{pid}") } }
  end

  def picture(page, variable = "RONDO_SCREENSHOT")
    file = ENV.fetch(variable, nil) or return
    page.screenshot(file)
  end

  def test_an_event_stream_stands_in
    chat do |server|
      stream, socket = enter(server, "Stream", "?sse"), enter(server, "Socket")
      say(stream, "posted")
      sees(socket, "Stream: posted")
      say(socket, "sent")
      sees(stream, "Stream: posted", "Socket: sent")
    end
  end

  def test_two_windows_are_two_people
    chat do |server|
      first, second = Array.new(2) { Chromium.shared.open(server.url).tap { |page| @pages << page } }
      [first, second].each { |page| connected(page, "WebSocket") }
      first.run("nick.value = 'Ada'; nick.onchange()")
      first.go(server.url)
      connected(first, "WebSocket")
      assert_equal "Ada", first.run("nick.value")
      second.go(server.url)
      connected(second, "WebSocket")
      assert_match(/\AGuest \d{3}\z/, second.run("nick.value"))
      say(first, "Whose is this?")
      [first, second].each { |page| page.wait_for("document.querySelector('#log li')") }
      assert_equal(["mine", ""], [first, second].map { |page| page.run("document.querySelector('#log li').className") })
    end
  end

  def test_a_long_word_stays_in_its_bubble
    chat do |server|
      page = enter(server, "Ada")
      say(page, "#{"long" * 100} and short")
      page.wait_for("document.querySelector('#log li')")
      assert_equal 0, page.run("Math.max(...[...document.querySelectorAll('html, #log, #log li')].map(it => it.scrollWidth - it.clientWidth))")
      picture(page, "RONDO_SCREENSHOT_LONG")
    end
  end

  def test_what_is_no_message
    chat do |server|
      uri = URI(server.url)
      ["", "x", "[]", "1", "null", '{"text":', '{"text":{}}', "{}", '{"nick":"a","text":" "}', "\xff",
       "{\"nick\":\"\xff\",\"text\":\"x\"}"].each do |body|
        assert_equal "400", Net::HTTP.post(uri, body).code, body
      end
      page = enter(server, "Ada")
      page.run("window.before = send; send('no JSON')")
      page.wait_for("send && send != before") # closed with 1008, and back again
      say(page, "still here")
      sees(page, "Ada: still here")
    end
  end
end
