# frozen_string_literal: true

# Channels within one process: which client gets which message, in which order, and the cost of a client that does not
# read.
# SPDX-License-Identifier: MIT

require_relative "rack_case"
require_relative "../../support/websocket_peer"

class PubsubTest < RackCase
  # Runs the message, a line of Ruby with `client` in it, and answers the result.
  class Handler
    def on_open(client) = client.write("open")

    def on_message(client, data)
      said = data.encoding == Encoding::BINARY ? "binary" : eval(data).inspect # rubocop:disable Security/Eval
      client.write("> #{said}")
    rescue ArgumentError, TypeError => e
      client.write("! #{e.class}: #{e.message}")
    end

    def heard(client) = ->(channel, message) { client.write("#{channel}=#{message} #{message.encoding}") }
  end

  UPGRADE = lambda do |env|
    env["rack.upgrade"] = Handler.new
    [200, {}, []]
  end

  FULL = "Refused a subscription of 127.0.0.1: subscriptions of all clients fill the memory they may use; " \
         "the limit is total_subscription_bytes"

  def teardown
    Rondo::PubSub.unsubscribe("jobs")
    Rondo::PubSub.history("kept", size: 0)
    super
  end

  def peers(count, **settings)
    start(UPGRADE, lint: false, **settings)
    Array.new(count) { connect_peer }
  end

  # Two messages, however much the kernel would keep for the first one; the client does not read.
  def stalled_and_other(**settings)
    start(UPGRADE, lint: false, max_pending_bytes: 200_000, **settings)
    [connect_peer(receive_buffer: 65_536), connect_peer]
  end

  def connect_peer(**options)
    peer = WebsocketPeer.new(@running.last.url, **options)
    @clients << peer
    assert_equal "open", peer.hear
    peer
  end

  def told(peer, code)
    answer = peer.ask(code)
    assert_match(/\A[>!] /, answer)
    answer.delete_prefix("> ")
  end

  # Ruby is told what the text is, and does not look itself.
  def test_what_a_text_is_said_to_be
    start(UPGRADE, lint: false)
    peer = connect_peer
    code = "[data.encoding.to_s, data.valid_encoding?, data.ascii_only?, data.length]"
    assert_equal ["UTF-8", true, true, code.length].inspect, told(peer, code)
    assert_equal ["UTF-8", true, false, code.length + 3].inspect, told(peer, "#{code} #é")
    assert_equal ["UTF-8", true, true, code.length + 603].inspect, told(peer, "#{code} ##{"x" * 601}")
  end

  # The lock may be held in the parent, and queued messages belong to the parent.
  def test_a_process_that_the_application_forks_has_no_channels
    peer, = peers(1)
    core = "Rondo::PubSub.instance_variable_get(:@cores).first"
    { "subscribe('x', false, nil, nil, proc {}, nil)" => "nil?", "observe(proc {})" => "nil?",
      "publish('x', 'y', false)" => "!" }.each do |call, expected|
      child = "fork { exit!(#{core}.#{call}.#{expected}) }"
      assert_equal "true", told(peer, "Process.wait(#{child}); $?.success?"), call
    end
  end

  def test_a_channel_goes_to_its_subscribers_and_to_nobody_else
    a, b, c = peers(3)
    assert_equal "true", told(a, "client.subscribe('news')")
    assert_equal "true", told(b, "client.subscribe(:news)")
    assert_equal "true", told(c, "client.subscribe('other')")
    a.say("client.publish(:news, 'hello')")
    assert_equal ["> true", "hello"], [a.hear, a.hear].sort
    assert_equal "hello", b.hear
    assert_equal "true", told(c, "client.publish('nobody', 'x')")
    assert_equal "true", told(b, "client.unsubscribe('news')")
    assert_equal "false", told(b, "client.unsubscribe('news')")
    assert_equal "true", told(c, "client.publish('news', 'again')")
    assert_equal "again", a.hear
    assert_equal "nil", told(b, "nil")
  end

  def test_patterns_and_a_channel_of_the_same_name_are_different
    a, b = peers(2)
    told(a, "client.subscribe('room.*', match: :redis)")
    told(a, "client.subscribe('room.*')")
    told(b, "client.subscribe('room.[0-9]', true)")
    told(b, "client.publish('room.*', 'one')")
    assert_equal("one", a.hear) # by its name
    assert_equal("one", a.hear) # by the pattern
    told(a, "client.unsubscribe('room.*')")
    b.say("client.publish('room.7', 'two')")
    assert_equal ["> true", "two"], [b.hear, b.hear].sort
    assert_equal "two", a.hear
    assert_equal "true", told(a, "client.unsubscribe('room.*', match: :redis)")
    told(b, "client.publish('room.x', 'three')")
    assert_equal "nil", told(a, "nil")
  end

  def test_blocks
    a, b = peers(2)
    told(a, "client.subscribe('news', &heard(client))")
    told(b, "client.publish('news', 'text')")
    assert_equal "news=text UTF-8", a.hear
    told(b, "client.publish('news', 'text'.b)")
    assert_equal "news=text UTF-8", a.hear
    told(b, "client.publish('news', \"\\xff\".b)")
    assert_equal "news=\xFF BINARY".b, a.hear.b.sub("ASCII-8BIT", "BINARY")
    told(a, "client.subscribe('news', as: :binary) { |channel, message, id| client.write([channel, message.encoding.to_s, id]) }")
    told(b, "client.publish('news', { 'a' => 1 })")
    assert_equal '["news","ASCII-8BIT",null]', a.hear
    told(a, "client.subscribe('news')")
    told(b, "client.publish('news', 'straight')")
    assert_equal "straight", a.hear
  end

  def test_text_and_binary
    a, b = peers(2)
    told(a, "client.subscribe('t', as: :text)")
    told(a, "client.subscribe('b', as: :binary)")
    told(b, "client.publish('t', 'é'.b)")
    assert_equal [WebsocketFrames::TEXT, "é".b], a.next_frame.then { |frame| [frame.opcode, frame.payload.b] }
    told(b, "client.publish('t', \"\\xff\".b)") # that is not text, in whatever form a client asks for it
    assert_equal [WebsocketFrames::BINARY, "\xFF".b], a.next_frame.then { |frame| [frame.opcode, frame.payload.b] }
    told(b, "client.publish('b', 'é')")
    assert_equal [WebsocketFrames::BINARY, "é".b], a.next_frame.then { |frame| [frame.opcode, frame.payload.b] }
  end

  # Text that came from PATH_INFO is BINARY, and so is what an application appends it to.
  def test_bytes_are_text_when_they_are_utf8
    a, b = peers(2)
    told(a, "client.subscribe('c')")
    [["'é'.b", :TEXT], ["\"\\xC3\".b", :BINARY], ["'é'.dup.force_encoding('ISO-8859-1')", :TEXT],
     ["'é'.encode('ISO-8859-1')", :BINARY], ["'é'.encode('UTF-16LE')", :BINARY], ["''.b", :TEXT]].each do |message, kind|
      told(b, "client.publish('c', #{message})")
      assert_equal WebsocketFrames.const_get(kind), a.next_frame.opcode, message
    end
  end

  def test_what_is_no_channel_no_option_and_no_message
    peer, = peers(1)
    [["client.subscribe('')", "ArgumentError: the name of a channel must have 1 to 1024 bytes"],
     ["client.subscribe('x' * 1025)", "ArgumentError: the name of a channel must have 1 to 1024 bytes"],
     ["client.subscribe('*' * 256, match: :redis)", "ArgumentError: a pattern must have 1 to 255 bytes"],
     ["Rondo.subscribe('*' * 256, true) { nil }", "ArgumentError: a pattern must have 1 to 255 bytes"],
     ["client.subscribe(1)", "TypeError: a channel must be a String or Symbol, not Integer"],
     ["client.subscribe('a', match: :glob)", "ArgumentError: match must be :redis or nil"],
     ["client.subscribe('a', as: :json)", "ArgumentError: as must be :text, :binary or nil"],
     ["client.subscribe('a', since: -1)", "ArgumentError: since must not be negative"],
     ["client.subscribe('a', since: 1.5)", "TypeError: since must be an Integer, a String or a Time, not Float"],
     ["client.subscribe('a', wrong: 1)", "ArgumentError: unknown keyword: :wrong"],
     ["client.publish('a', 1)", "TypeError: a String, Hash or Array can be sent, not Integer"],
     ["client.publish('a', \"\\xff\")", "ArgumentError: the text of the message is not valid UTF-8"],
     ["client.publish('', 'a')", "ArgumentError: the name of a channel must have 1 to 1024 bytes"]].each do |code, error|
      assert_equal "! #{error}", told(peer, code), code
    end
    assert_equal "0", told(peer, "client.pubsub?")
  end

  def test_no_more_subscriptions_than_are_allowed
    peer, = peers(1, max_subscriptions: 2)
    assert_equal "[true, true, nil, true]", told(peer, "%w[a b c a].map { |name| client.subscribe(name) }")
    assert_equal "[true, true, nil]", told(peer, "[client.unsubscribe('a'), *%w[c d].map { |name| client.subscribe(name) }]")
  end

  # Each client has room for one name of 1,000 bytes; all together have room for three.
  def test_names_of_one_client_and_of_all_are_limited
    crowd = peers(5, max_subscription_bytes: 1100, total_subscription_bytes: 4100)
    long = ->(letter) { "client.subscribe('#{letter}' * 1000)" }
    answers = crowd.each_with_index.map { |peer, i| told(peer, long.call((97 + i).chr)) }
    assert_equal %w[true true true nil nil], answers
    assert_equal "nil", told(crowd[0], long.call("z"))
    assert_equal "true", told(crowd[3], "client.subscribe('short')") # 261 bytes more
    told(crowd[0], "client.unsubscribe('a' * 1000)")
    assert_equal "true", told(crowd[4], long.call("e"))
    eventually("a line in the log") { log.include?(FULL) }
  end

  def test_order_and_once_each_from_many_threads
    subscribers = peers(8)
    subscribers.each { |peer| told(peer, "client.subscribe('many')") }
    publishers = Array.new(4) do |n|
      Thread.new { 500.times { |i| Rondo.publish("many", "#{n}:#{i}") } }
    end
    subscribers.each do |peer|
      heard = Array.new(2000) { peer.hear.split(":").map(&:to_i) }
      heard.group_by(&:first).each_value { |each| assert_equal (0...500).to_a, each.map(&:last) }
    end
    publishers.each(&:join)
  end

  def test_subscribing_without_a_client
    heard = Queue.new
    Rondo.subscribe("jobs") { |channel, message, id| heard << [channel, message, id] }
    peer, = peers(1)
    told(peer, "client.publish('jobs', 'one')")
    assert_equal ["jobs", "one", nil], heard.pop
    second = start(UPGRADE, lint: false)
    other = connect_peer # it is serving by then
    Rondo.subscribe("jobs") { |_, message| heard << message }
    told(peer, "client.publish('jobs', 'two')")
    assert_equal(%w[two two], [heard.pop, heard.pop]) # both servers of this process
    other.close # no program would answer its Close
    second.stop
    assert Rondo.unsubscribe(:jobs)
    refute Rondo.unsubscribe(:jobs)
    told(peer, "client.publish('jobs', 'three')")
    assert_empty heard
    assert_raises(ArgumentError) { Rondo.subscribe("jobs") }
  end

  # Calls a block after each subscription of a server, before anything else happens.
  module Interrupted
    class << self
      attr_accessor :with
    end

    def subscribe(*)
      super.tap { Interrupted.with&.call }
    end
  end
  Rondo::Server::Core.prepend(Interrupted)

  # A message that is published in the middle of that reaches one of the two.
  def test_a_block_takes_the_place_of_another_one
    heard = Queue.new
    Rondo.subscribe("jobs") { |_, message| heard << [1, message] }
    peer, = peers(1)
    told(peer, "nil") # it serves by then
    between = nil
    Interrupted.with = -> { between ||= Rondo.publish("jobs", "between") && heard.pop }
    Rondo.subscribe("jobs") { |_, message| heard << [2, message] }
    Rondo.publish("jobs", "after")
    # The first server of this test, even if a server of another test has not ended yet and was called first.
    assert_equal ["between", [2, "after"]], [between.last, heard.pop]
    assert_empty heard
  ensure
    Interrupted.with = nil
    Rondo.unsubscribe("jobs")
  end

  def test_an_error_in_a_block_is_logged_and_ends_nobody_else
    a, b = peers(2)
    Rondo.subscribe("jobs") { raise "out of a block" }
    told(b, "client.subscribe('news') { raise 'out of a block of a client' }")
    told(a, "client.publish('jobs', 'x')")
    told(a, "client.publish('news', 'x')")
    assert_equal [1011, ""], b.hear_close
    assert_equal "nil", told(a, "nil")
    assert_match(/out of a block$/, log)
    assert_match(/out of a block of a client/, log)
  end

  def test_history
    Rondo::PubSub.history("kept", size: 3)
    a, b = peers(2)
    %w[1 2 3 4].each { |text| told(a, "client.publish('kept', '#{text}')") }
    told(a, "client.publish('not kept', 'x')")
    b.say("client.subscribe('kept', since: 0)")
    assert_equal(%w[2 3 4], Array.new(3) { b.hear })
    assert_equal "> true", b.hear
    told(a, "client.publish('kept', '5')")
    assert_equal "5", b.hear
    c = connect_peer
    c.say("client.subscribe('kept', since: Time.now - 3600) { |_, message, id| client.write([message, id]) }")
    heard = [c.hear, c.hear, c.hear, c.hear]
    assert_includes heard, "> true"
    ids = (heard - ["> true"]).map { |text| JSON.parse(text) }
    assert_equal(%w[3 4 5], ids.map(&:first))
    d = connect_peer
    d.say("client.subscribe('kept', since: '#{ids[1].last}')")
    assert_equal %w[5], [d.hear]
    assert_equal "> true", d.hear
    %w[garbage -1 99999999999999999999999 1e3].each do |hostile|
      assert_equal "true", told(d, "client.subscribe('kept', since: '#{hostile}')")
    end
  end

  # In the line of a block they take more than they are long.
  def test_a_replay_to_a_block_that_finds_too_little_room
    Rondo::PubSub.history("kept", size: 1000)
    a, b = peers(2, max_pending_bytes: 65_536)
    assert_equal "500", told(a, "500.times { |number| client.publish('kept', format('%0100d', number)) }")
    b.say("client.subscribe('kept', since: 0) { |_, message| client.write('last') if message.end_with?('0499') }")
    assert_equal ["> true", "last"], [b.hear, b.hear].sort
    assert_equal "1", told(b, "1")
  end

  def test_a_history_of_so_many_bytes
    Rondo::PubSub.history("kept", size: 100, bytes: 1000)
    a, b = peers(2)
    5.times { |number| told(a, "client.publish('kept', '#{number}' * 400)") }
    b.say("client.subscribe('kept', since: 0)")
    assert_equal(%w[3 4], Array.new(2) { b.hear[0] })
    assert_equal "> true", b.hear
    assert_match(/ArgumentError: bytes must be from 0/, told(a, "Rondo::PubSub.history('kept', size: 1, bytes: -1)"))
  end

  def test_a_subscription_ends_with_its_client
    a, b = peers(2)
    told(a, "client.subscribe('gone')")
    a.close
    Rondo.subscribe("jobs") { |_, message| message }
    told(b, "client.subscribe('gone')")
    b.say("client.publish('gone', 'here')")
    assert_equal ["> true", "here"], [b.hear, b.hear].sort
  end

  def test_another_handler
    second = Class.new do
      def on_open(client) = client.write("second")
      def on_message(client, data) = client.write("second #{data}")
    end
    PubsubTest.const_set(:Second, second)
    a, b = peers(2)
    told(a, "client.subscribe('news')")
    a.say("client.handler = PubsubTest::Second.new; client.handler.class")
    assert_equal "> PubsubTest::Second", a.hear
    assert_equal "second", a.hear
    assert_equal "second x", a.ask("x")
    told(b, "client.publish('news', 'stays')")
    assert_equal "stays", a.hear
    b.say("client.handler = nil")
    assert_equal [1000, ""], b.hear_close
  ensure
    PubsubTest.send(:remove_const, :Second)
  end

  def test_a_timeout_of_ones_own
    peer, = peers(1)
    assert_equal "40.0", told(peer, "client.timeout")
    assert_equal "! ArgumentError: timeout must be from 0 to 86400 seconds, not -1", told(peer, "client.timeout = -1")
    assert_equal "0.05", told(peer, "client.timeout = 0.05")
    assert_equal WebsocketFrames::PING, peer.next_frame.opcode
    assert_nil peer.next_frame
  end

  def test_a_reader_that_does_not_read_is_dropped
    skip "what the proxy holds counts as read" if XorProxy.on?
    stalled, other = stalled_and_other
    [stalled, other].each { |peer| told(peer, "client.subscribe('flood')") }
    2000.times do
      Rondo.publish("flood", "x" * 8000)
      assert_equal 8000, other.hear.size
    end
    heard = 0
    heard += 1 while stalled.next_frame
    assert_operator heard, :<, 2000
  end

  # A client is not slow if its connection takes more than max_pending_bytes at once within a turn.
  def test_a_burst_for_a_reader_that_reads
    reader, publisher = peers(2, max_pending_bytes: 200_000)
    told(reader, "client.subscribe('flood')")
    publisher.say("60.times { |n| Rondo.publish('flood', n.to_s.ljust(8000)) }; nil")
    assert_equal (0...60).to_a, Array.new(60) { reader.hear.to_i }
  end

  def test_the_oldest_messages_are_dropped
    heard = heard_of_flood(slow_client: :drop_oldest)
    assert_includes heard, 2999
    assert_equal heard.sort.uniq, heard
    assert_operator heard.size, :<, 3000
  end

  def test_the_newest_messages_are_dropped
    heard = heard_of_flood(slow_client: :drop_newest)
    assert_equal 0, heard.first
    assert_equal heard.sort.uniq, heard
    assert_operator heard.size, :<, 3000
  end

  # The messages for a client that begins to read after everything was published.
  def heard_of_flood(**settings)
    stalled, publisher = stalled_and_other(**settings)
    told(stalled, "client.subscribe('flood')")
    told(publisher, "3000.times { |n| Rondo.publish('flood', n.to_s.ljust(8000)) }; nil")
    heard = []
    until heard.last == "end"
      Rondo.publish("flood", "end") # until there is room for it
      heard << stalled.hear
    end
    heard.reject { |text| text == "end" }.map(&:to_i)
  end
end
