# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# What the Rails application pushes, the same in production and in development; and in development
# what becomes of open WebSockets when the code is loaded anew.

require "json"
require "support/cable_peer"
require_relative "rails_app"

module RailsPush
  def feed(query = nil)
    peer = open_websocket(["/live_notes", query].compact.join("?"))
    assert_match(/\Avisit \d+\z/, peer.hear)
    peer
  end

  def read_until(client, ending)
    seen = client.read_some
    seen << client.read_some until seen.end_with?(ending)
    seen
  end

  def test_an_action_that_upgrades
    peer = open_websocket("/live_notes")
    assert_match(%r{\AHTTP/1.1 101 }, peer.head)
    assert_match(/^x-request-id: [\h-]{36}\r$/, peer.head, "through the whole stack")
    refute_match(/^(content-length|transfer-encoding):/i, peer.head)
    assert_equal "visit 1", peer.hear
  end

  def test_cookies_and_session_of_the_answer_101
    feed
    assert_equal "visit 2", open_websocket("/live_notes").hear
    assert_equal ",,e,2", browser.get("/remembered").body
  end

  def test_what_is_no_websocket_and_who_is_a_stranger
    assert_equal "426", browser.get("/live_notes").code
    assert_match(%r{\AHTTP/1.1 403 }, open_websocket("/live_notes", origin: "http://stranger.example").head)
  end

  def test_what_an_action_creates_arrives
    peers = Array.new(2) { feed }
    assert_equal "302", save("Grüße").code
    peers.each { |peer| assert_equal "Grüße", JSON.parse(peer.hear)["text"] }
    assert_equal "422", save("").code
    assert_equal "302", save("another").code
    assert_equal "another", JSON.parse(peers.first.hear)["text"]
  end

  def test_a_stream_of_events
    RawClient.open(server.url) do |client|
      client.write("GET /live_notes HTTP/1.1\r\nHost: #{URI(server.url).authority}\r\nAccept: text/event-stream\r\n\r\n")
      head, rest = read_until(client, "data: visit 1\n\n").split("\r\n\r\n", 2)
      assert_equal "data: visit 1\n\n", rest
      ["HTTP/1.1 200 ", "content-type: text/event-stream\r", "set-cookie: secret="].each { |line| assert_match(/^#{line}/, head) }
      refute_match(/^(content-length|etag|transfer-encoding):/i, head)
      save("streamed")
      assert_equal "streamed", JSON.parse(read_until(client, "\n\n")[/^data: (.*)/, 1])["text"]
    end
  end

  def test_records_in_a_callback
    peer = feed
    text = "by a callback of #{server.pid}"
    assert_equal "created #{text}", peer.ask("create #{text}")
    assert_equal "found 1", peer.ask("find #{text}")
    assert_includes browser.get("/notes").body, text
  end

  def test_a_callback_returns_its_connection_to_the_database
    peer = feed
    assert_equal %w[leased], Array.new(10) { peer.ask("lease") }.uniq
    assert_equal ["leased: false"], Array.new(10) { peer.ask("leased") }.uniq
  end

  def test_a_callback_that_fails_closes_its_own_websocket
    peer, other = Array.new(2) { feed }
    assert_equal [1011, ""], peer.say("create").hear_close
    assert_equal "found 0", other.ask("find nothing")
    server.wait_for_log(/RecordInvalid/)
  end
end

module RailsReload
  def test_an_open_websocket_uses_what_was_loaded_anew
    peer = feed
    assert_equal "Note is Note", peer.ask("name")
    renaming_notes do
      assert_equal "Note is Note", peer.ask("name"), "until a request comes"
      assert_equal "200", browser.get("/up").code
      assert_equal "Note is another", peer.ask("name")
    end
    browser.get("/up")
    assert_equal "Note is Note", peer.ask("name")
  end

  def test_a_handler_lives_on_as_it_was
    peer = feed
    changing("app/push/note_feed.rb", "the first", "the second") do
      assert_equal "the second version", feed.ask("version")
      assert_equal "the first version", peer.ask("version")
    end
  end

  def test_a_handler_that_makes_room_for_the_next_one
    peer = feed("reload")
    changing("app/push/note_feed.rb", "the first", "the second") do
      assert_equal "200", browser.get("/up").code
      assert_equal [1012, ""], peer.hear_close
      assert_equal "the second version", feed("reload").ask("version")
    end
  end

  # Up to 7.2 the end of the body that Action Cable returns after its hijack ends the share of the
  # interlock that its request has; code is loaded anew only when no other thread has one.
  def test_code_is_loaded_anew_after_connections_of_action_cable
    3.times do |round|
      peers = Array.new(4) { open_websocket("/cable") }
      peers.each { |peer| assert_equal "welcome", JSON.parse(peer.hear)["type"] }
      changing("app/controllers/pages_controller.rb", 'plain: "cached"', "plain: \"round #{round}\"") do
        assert_equal "round #{round}", browser.get("/cached").body
      end
      peers.each(&:close)
      assert_equal "cached", browser.get("/cached").body
    end
  end

  # What listens to the old code is told to come back, and finds the new one.
  def test_action_cable_has_the_code_that_was_loaded_anew
    2.times { |number| listen_to_version("version #{number}") }
  end

  # Rails' interlock: what is being used is not taken away; who wants to take it away waits.
  def test_a_callback_that_runs_while_code_is_loaded_anew
    peer = feed
    assert_equal "Note is Note", peer.ask("name")
    assert_equal "waiting", peer.ask("wait")
    renaming_notes do
      request = Thread.new { Net::HTTP.get_response(URI("#{server.url}/up")).code }
      assert_equal "waited for Note", peer.hear
      assert_equal "200", request.value
      assert_equal "Note is another", peer.ask("name")
    end
  end

  private

  def listen_to_version(version)
    changing("app/channels/rooms_channel.rb", "the first", version) do
      assert_equal "200", browser.get("/up").code
      peer = CablePeer.new(server.url).welcomed
      id = peer.subscribe(room: "reload")
      assert_equal version, peer.perform(id, "version").hear_of(id)["version"]
      File.utime(nil, nil, File.join(RailsApp.instance.path, "app/models/note.rb"))
      assert_equal "200", browser.get("/up").code
      assert_equal({ "type" => "disconnect", "reason" => "server_restart", "reconnect" => true }, peer.hear)
      assert_equal [1000, ""], peer.hear_close
      peer.close
    end
  end

  def renaming_notes(&block)
    changing("app/models/note.rb", "validates", "def self.name = \"another\"\n\n  validates", &block)
  end

  def changing(path, from, to)
    file = File.join(RailsApp.instance.path, path)
    before = File.read(file)
    File.write(file, before.sub(from, to))
    yield
  ensure
    File.write(file, before)
  end
end
