# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Action Cable on the server's own connections: what every application has, in production and in development.

require "support/cable_peer"
require_relative "app_case"

module RailsCable
  def cable(query = {}, **options)
    peer = CablePeer.new(server.url, query, **options)
    (@peers ||= []) << peer
    peer
  end

  def member(how = nil, **query)
    peer = cable(query).welcomed
    [peer, peer.subscribe(room: name, how: how)]
  end

  def test_streams_go_to_all_who_listen
    pairs = Array.new(3) { member }
    other = cable.welcomed
    other_id = other.subscribe(room: name, as: "another")
    pairs.first.first.perform(pairs.first.last, "say", text: "Grüße <b>")
    pairs.each { |peer, id| assert_equal({ "text" => "Grüße <b>" }, peer.hear_of(id)) }
    assert_equal({ "text" => "Grüße <b>" }, other.hear_of(other_id))
  end

  def test_the_subprotocol
    assert_match(/^sec-websocket-protocol: actioncable-v1-json\r?$/i, cable.head)
    assert_match(/^sec-websocket-protocol: actioncable-unsupported\r?$/i, cable({}, protocols: "actioncable-unsupported").head)
    refute_match(/^sec-websocket-protocol/i, cable({}, protocols: "something-else").head)
    assert_match(/ 101 /, cable({}, protocols: nil).welcomed.head)
  end

  def test_callbacks_and_coders_are_events_of_the_connection
    called, decoded = %w[callback coder].map { |how| member(how) }
    sender, id = member
    10.times { |number| sender.perform(id, "say", text: number) }
    10.times do |number|
      assert_equal({ "called" => JSON.generate({ text: number }), "busy" => true }, called.first.hear_of(called.last))
      assert_equal({ "decoded" => number }, decoded.first.hear_of(decoded.last))
    end
  end

  def test_events_of_a_connection_come_one_at_a_time_and_in_order
    peer, id = member
    100.times { |number| peer.perform(id, "slowly", number: number) }
    100.times { |number| assert_equal [{ "begin" => number }, { "end" => number }], [peer.hear_of(id), peer.hear_of(id)] }
  end

  def test_commands_before_welcome
    peer = cable
    identifiers = Array.new(3) { |number| peer.ask("RoomsChannel", room: number) }
    peer.welcomed
    identifiers.each { |id| assert_equal({ "identifier" => id, "type" => "confirm_subscription" }, peer.hear) }
  end

  def test_an_action_in_the_executor_and_who_asks
    peer, id = member(visitor: "ann")
    peer.perform(id, "echo", text: "hello")
    assert_equal({ "echo" => "hello", "visitor" => "ann", "busy" => true }, peer.hear_of(id))
  end

  def test_streams_that_come_and_go
    peer, id = member
    sender, sender_id = member
    peer.perform(id, "quiet", room: "room #{name}").perform(id, "other", room: "room elsewhere").perform(id, "echo", text: 1)
    assert_equal 1, peer.hear_of(id)["echo"]
    sender.perform(sender_id, "say", text: "unheard")
    assert_equal({ "text" => "unheard" }, sender.hear_of(sender_id))
    elsewhere = cable.welcomed
    elsewhere.perform(elsewhere.subscribe(room: "elsewhere"), "say", text: "heard")
    assert_equal({ "text" => "heard" }, peer.hear_of(id))
  end

  def test_two_streams_of_one_channel
    peer, id = member("twice")
    [name, "#{name} too"].each do |room|
      sender = cable.welcomed
      sender.perform(sender.subscribe(room: room), "say", text: room)
      assert_equal({ "text" => room }, peer.hear_of(id))
    end
  end

  def test_leaving_and_coming_back
    peer, id = member
    peer.command("unsubscribe", id).command("subscribe", id)
    assert_equal({ "identifier" => id, "type" => "confirm_subscription" }, peer.hear)
    peer.perform(id, "say", text: "once")
    assert_equal({ "text" => "once" }, peer.hear_of(id))
    peer.perform(id, "echo", text: "not twice")
    assert_equal "not twice", peer.hear_of(id)["echo"]
  end

  def test_a_rejection_and_a_visitor_who_may_not_connect
    peer = cable.welcomed
    id = peer.ask("RoomsChannel", room: "closed")
    assert_equal({ "identifier" => id, "type" => "reject_subscription" }, peer.hear)
    stranger = cable({ visitor: "nobody" })
    assert_equal({ "type" => "disconnect", "reason" => "unauthorized", "reconnect" => false }, stranger.hear)
    assert_equal [1000, ""], stranger.hear_close
    assert_equal [1011, ""], cable({ visitor: "broken" }).hear_close
  end

  def test_a_remote_disconnect
    one, id = member(visitor: name)
    two, = member(visitor: name)
    stays, stays_id = member(visitor: "#{name} another")
    one.perform(id, "farewell")
    [one, two].each do |peer|
      assert_equal({ "type" => "disconnect", "reason" => "remote", "reconnect" => true }, peer.hear) if says_remote?
      assert_equal [1000, ""], peer.hear_close
    end
    stays.perform(stays_id, "echo", text: "still here")
    assert_equal "still here", stays.hear_of(stays_id)["echo"]
  end

  def test_periodic_timers_and_heartbeats
    peer = cable.welcomed
    id = peer.subscribe("TicksChannel")
    assert_equal [{ "tick" => 1 }, { "tick" => 2 }], [peer.hear_of(id), peer.hear_of(id)]
    Timeout.timeout(60) { peer.hear_of(id) while peer.pings.zero? }
  end

  def test_whose_pages
    stranger = cable({}, origin: "http://stranger.example")
    assert_match(%r{\AHTTP/1.1 404 }, stranger.head)
    assert_match(%r{\AHTTP/1.1 404 }, browser.get("/cable").then { "HTTP/1.1 #{browser.response.code} " })
  end

  def test_no_thread_of_its_own
    peer, id = member("callback")
    peer.perform(id, "say", text: 1).hear_of(id)
    peer.perform(id, "threads")
    threads = peer.hear_of(id)["threads"]
    assert_empty threads.grep(/ActionCable|nio/i)
    assert_empty Dir.glob("/proc/#{server.pid}/task/*/comm").map { |file| File.read(file) }.grep(/nio/i)
  end

  # What a client may send, whatever it is.
  def test_hostile_clients
    peer, id = member
    ["no JSON", "[]", "{}", '{"command":"subscribe"}', '{"command":"message","identifier":"x"}', '{"command":"fly"}',
     JSON.generate({ command: "subscribe", identifier: "no JSON" }),
     JSON.generate({ command: "subscribe", identifier: { channel: "RoomsChannel" } })].each { |text| peer.say(text) }
    %w[NoSuchChannel Kernel ActionCable::Channel::Base].each { |channel| peer.ask(channel) }
    if turbo?
      forged = peer.ask("Turbo::StreamsChannel", signed_stream_name: "forged")
      assert_equal({ "identifier" => forged, "type" => "reject_subscription" }, peer.hear)
    end
    peer.perform(id, "fails").perform(id, "no_such_action").perform(id, "subscribed")
    peer.perform(id, "echo", text: "still here")
    assert_equal "still here", peer.hear_of(id)["echo"]
    server.wait_for_log(/Subscription class not found: "NoSuchChannel"/) if production?
  end

  def test_subscriptions_and_identifiers_have_limits
    peer, = member
    id = peer.ask("RoomsChannel", room: "x" * 65_536)
    assert_equal({ "identifier" => id, "type" => "reject_subscription" }, peer.hear)
    types = 10_000.times.each_slice(500).flat_map do |numbers|
      numbers.each { |number| peer.ask("RoomsChannel", room: "#{name} #{number}") }.map { peer.hear["type"] }
    end
    assert_equal ["confirm_subscription"] * 999, types.shift(999)
    assert_equal ["reject_subscription"] * 9001, types
  end

  def test_identifiers_have_a_limit_in_sum
    peer = cable.welcomed
    identifiers = Array.new(40) { |number| peer.ask("RoomsChannel", room: "#{name} #{number + 10} #{"x" * 8000}") }
    fit = 256_000 / identifiers.first.bytesize
    assert_equal [*["confirm_subscription"] * fit, *["reject_subscription"] * (40 - fit)], identifiers.map { peer.hear["type"] }
    3.times { peer.command("unsubscribe", identifiers.first).command("subscribe", identifiers.first) }
    assert_equal ["confirm_subscription"] * 3, Array.new(3) { peer.hear["type"] }
  end

  # It is closed, and its channel hears of it, which only its own process can tell.
  def test_a_client_that_reads_nothing
    deaf, = member(visitor: "deaf #{name}")
    other, other_id = member
    before = other.perform(other_id, "version").hear_of(other_id)["seen"]
    speaker = cable.welcomed
    id = speaker.subscribe(room: name, how: "silent")
    # Never more at a time than may wait for one client: this one reads late on a busy machine.
    60.times do
      5.times { speaker.perform(id, "say", text: "x" * 100_000) }
      other_reads(other, other_id, 5)
    end
    assert_raises(RuntimeError, SystemCallError, EOFError) { loop { deaf.hear } }
    assert_operator speaker.perform(id, "version").hear_of(id)["seen"], :>, before if one_process?
  end

  def one_process? = true

  def other_reads(peer, id, count)
    count.times { assert_equal 100_000, peer.hear_of(id)["text"].bytesize }
  end

  def test_what_is_not_json_goes_to_nobody
    peer, id = member
    peer.perform(id, "raw", text: '{"broken').perform(id, "raw", text: '"whole"')
    assert_equal "whole", peer.hear_of(id)
  end

  def production? = false
  def turbo? = true
  # Rails 7.0 closes without a word.
  def says_remote? = true
end
