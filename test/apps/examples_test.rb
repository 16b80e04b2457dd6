# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The examples that push, started as examples/README.md says: by their command, in development. What
# goes over the wire, and what a real browser's page makes of it (the chat's: chat_test.rb).

require "json"
require_relative "app_case"
require "support/browser"

class ExampleCase < AppCase
  EXAMPLES = File.join(ServerProcess::ROOT, "examples")

  def self.start_server
    ServerProcess.new(File.join(EXAMPLES, self::NAME), env: { "RACK_ENV" => "development", "RAILS_ENV" => nil })
  end

  def open_page
    skip "chromium is not installed" unless Chromium.find
    (@pages ||= []) << Chromium.shared.open(server.url)
    @pages.last
  end

  def teardown
    @pages&.each(&:close)
    super
  end

  def first_line(page, text)
    page.wait_for("document.querySelector('li')?.textContent.includes(#{text.to_json}) && " \
                  "document.querySelector('li').textContent")
  end
end

class EchoExampleTest < ExampleCase
  NAME = "echo.ru"

  def test_it_says_what_it_hears
    assert_equal "Grüße".b, open_websocket("/").ask("Grüße").b
    assert_equal "a WebSocket lives here\n", browser.get("/").body
  end

  def test_what_its_comment_says
    lines = File.read(File.join(EXAMPLES, NAME)).scan(/^# {3}(socket.*)/).flatten
    page = open_page
    page.run("globalThis.console.log = (text) => { globalThis.heard = text }; 0")
    page.run("#{lines[0]}; #{lines[1]}; new Promise(open => socket.onopen = () => open(1))")
    page.run("#{lines[2]}\n0")
    assert_equal "hello", page.wait_for("globalThis.heard")
  end
end

class PresenceExampleTest < ExampleCase
  NAME = "presence.ru"

  def test_who_comes_and_goes
    ada, bob = Array.new(2) { open_websocket("/") }
    ada.say("ada")
    assert_equal ["ada came"], [ada, bob].map(&:hear).uniq
    bob.say("bob")
    assert_equal ["bob came"], [ada, bob].map(&:hear).uniq
    assert_equal "ada\nbob\n", browser.get("/").body
    assert_match(/an id must have 1 to 256 bytes/, bob.ask("x" * 257))
    ada.close
    assert_equal "ada left", bob.hear
    assert_equal "bob\n", browser.get("/").body
  end
end

class ChatExampleTest < ExampleCase
  NAME = "chat/config.ru"

  def say(peer, **message)
    peer.say(JSON.generate(message))
  end

  def heard(peer)
    JSON.parse(peer.hear).values_at("nick", "text")
  end

  def test_a_room_hears_what_is_said_in_it
    ada, bob, other = %w[one one two].map { |room| open_websocket("/?room=#{room}") }
    say(ada, nick: "ada", text: "Grüße")
    [ada, bob].each { |peer| assert_equal %w[ada Grüße], heard(peer) }
    say(other, nick: "eve", text: "elsewhere")
    assert_equal %w[eve elsewhere], heard(other)
    assert_equal %w[ada Grüße], heard(open_websocket("/?room=one")), "what was said before"
  end

  def test_what_is_no_message
    ["", "[]", "1", "null", "{", '{"nick":"ada"}', '{"nick":1,"text":"x"}', '{"nick":"ada","text":" "}'].each do |data|
      assert_equal [1008, "that is no message"], open_websocket("/?room=three").say(data).hear_close, data
    end
  end
end

class SinatraExampleTest < ExampleCase
  NAME = "sinatra/config.ru"

  def pin(text, nick: "ada")
    browser.post("/notes", { "nick" => nick, "text" => text }, "origin" => server.url)
  end

  # The last of the notes that are there.
  def heard_until(peer, text)
    note = JSON.parse(peer.hear) until note && note["text"] == text
    note
  end

  def test_a_form_publishes_to_all_open_pages
    peers = Array.new(2) { open_websocket("/live") }
    peers.each { |peer| assert_match(%r{\AHTTP/1.1 101 }, peer.head) }
    assert_equal ["303", "#{server.url}/"], [pin("Grüße & <b>more</b>").code, browser.response["location"]]
    peers.each do |peer|
      assert_equal({ "nick" => "ada", "text" => "Grüße & <b>more</b>" }, heard_until(peer, "Grüße & <b>more</b>"))
    end
    assert_includes browser.follow.body, 'value="ada"', "the session knows the name"
    heard_until(open_websocket("/live"), "Grüße & <b>more</b>")
  end

  def test_sessions_and_protections_are_passed
    peer = open_websocket("/live")
    assert_match(/^set-cookie: rack\.session=/i, peer.head)
    assert_match(/^x-frame-options: SAMEORIGIN\r$/i, peer.head)
    refute_match(/^content-length:/i, peer.head)
    assert_match(%r{\AHTTP/1.1 403 }, open_websocket("/live", origin: "http://stranger.example").head)
    assert_match(%r{\AHTTP/1.1 403 }, open_websocket("/live", origin: nil).head)
    assert_equal "426", browser.get("/live").code
  end

  def test_a_stranger_cannot_post
    browser.get("/")
    assert_equal "403", browser.post("/notes", { "text" => "forged" }, "origin" => "http://stranger.example").code
  end

  def test_what_no_form_sends
    assert_equal "303", browser.post("/notes", "text[]" => "x", "nick[a]" => "b").code
    assert_equal "303", browser.post("/notes").code
    assert_includes %w[303 400], browser.post("/notes", "text" => "\xff").code
  end

  def test_the_page_of_a_browser
    reader, writer = Array.new(2) { open_page }
    writer.run("document.querySelector('[name=nick]').value = 'bob'
                document.querySelector('[name=text]').value = '<i>page</i>'
                document.querySelector('button').click()")
    [reader, writer].each { |page| assert_equal "bob: <i>page</i>", first_line(page, "<i>page</i>") }
  end
end

class RailsExampleTest < ExampleCase
  NAME = "rails_push.ru"

  def publish(text, origin: server.url)
    token = browser.get("/").body[/name="authenticity_token" value="([^"]+)"/, 1]
    browser.post("/notes", { "text" => text, "authenticity_token" => token }, "origin" => origin)
  end

  def test_a_form_publishes_to_all_open_pages
    peers = Array.new(2) { open_websocket("/live") }
    welcomes = peers.map { |peer| JSON.parse(peer.hear)["text"] }
    assert_match(/\AWelcome, guest \d+\z/, welcomes.first)
    assert_equal 1, welcomes.uniq.size, "the second one came with the cookie of the first"
    assert_equal "204", publish("Grüße").code
    peers.each { |peer| assert_equal({ "text" => "Grüße" }, JSON.parse(peer.hear)) }
  end

  def test_who_may_not
    assert_equal "426", browser.get("/live").code
    assert_match(%r{\AHTTP/1.1 403 }, open_websocket("/live", origin: "http://stranger.example").head)
    assert_equal "422", publish("forged", origin: "http://stranger.example").code
    assert_equal "422", browser.post("/notes", "text" => "without a token").code
  end

  def test_the_page_of_a_browser
    reader, writer = Array.new(2) { open_page }
    [reader, writer].each { |page| first_line(page, "Welcome") }
    writer.run("document.querySelector('[name=text]').value = '<i>page</i>'
                document.querySelector('[type=submit]').click()")
    [reader, writer].each { |page| assert_equal "<i>page</i>", first_line(page, "<i>page</i>") }
  end
end
