# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Action Cable with `adapter: rondo`: two workers, and processes that do not serve and broadcast.

require_relative "rails_behaviour"
require_relative "rails_cable"
require_relative "rails_resuming"
require_relative "rails_turbo"
require "rondo"
require "rondo/rails/cable/publisher"

class RailsClusterTest < AppCase
  include RailsCable
  include RailsResuming
  include RailsTurbo

  ENVIRONMENT = RailsApp::ENVIRONMENT.merge("RAILS_ENV" => "production", "CABLE" => "rondo", "WEB_CONCURRENCY" => "2").freeze

  def self.start_server
    app = RailsApp.instance
    ServerProcess.new(File.join(app.path, "config.ru"), spawn: { chdir: app.path }, deadline: 60, env: ENVIRONMENT,
                                                        args: ["-w", "2", "--control-url", "auto"]).tap do |server|
      server.wait_for_log(/(- Worker \d+ .*booted.*){2}/m)
    end
  end

  def test_the_status_page_by_its_engine
    answer = browser.get("/server")
    assert_equal "200", answer.code
    assert_match(/<title>Rondo: status/, answer.body)
    # Workers before a restart may still have streams.
    Timeout.timeout(60) { sleep 0.01 until JSON.parse(browser.get("/server/stats").body)["worker_status"].size == 2 }
  end

  # A process that serves gives a message to its own server.
  def setup
    super
    refute_predicate Rondo::PubSub, :serving?, "a test before this one has left a server in this process"
  end

  def one_process? = false

  def folder
    File.join(RailsApp.instance.path, "tmp/rondo-cable")
  end

  def publisher(path = folder)
    Rondo::Rails::Cable::Publisher.new(Rondo::Rails::Cable::SocketFolder.new({ "socket_folder" => path }))
  end

  # A process tells when its socket is there only by the socket. One that was killed may have left its own.
  def wait_for_sockets
    server # which the first test starts
    Timeout.timeout(60) { sleep 0.01 until sockets.size == 2 }
  end

  # Replaces the workers; in the end the old ones have gone. The block gets what waits for new ones.
  def restart
    before = sockets
    from = server.log.bytesize
    server.signal("USR1")
    yield(->(count = 2) { server.wait_for_log(/(- Worker \d+ .*booted.*){#{count}}/m, from: from) })
    Timeout.timeout(60) { sleep 0.01 while sockets.intersect?(before) }
    wait_for_sockets
  end

  def sockets
    Dir.glob(File.join(folder, "*.sock")).select { |path| File.exist?("/proc/#{File.basename(path).to_i}") }
  end

  # Its members are in both workers.
  def members(number, room)
    Array.new(number) do
      peer = cable.welcomed
      [peer, peer.subscribe(room: room)]
    end
  end

  def broadcast(to, room, text)
    to.publish("room #{room}", JSON.generate({ text: text }))
  end

  def test_a_job_broadcasts
    wait_for_sockets
    members = members(8, name)
    script = %(exit 9 unless ActionCable::SubscriptionAdapter::Rondo.channel("x").match?(/\\A\\0rondo:cable:\\h{32}:x\\z/); ) +
             %(ActionCable.server.broadcast("room #{name}", { text: "a job" }); fork { RoomsChannel.server rescue 0; ) +
             %(ActionCable.server.broadcast("room #{name}", { text: "its child" }) }; Process.wait; exit($?.exitstatus))
    output, status = Open3.capture2e(ENVIRONMENT, RailsApp.instance.rails, "runner", script, chdir: RailsApp.instance.path)
    assert_predicate status, :success?, output
    members.each { |peer, id| assert_equal [{ "text" => "a job" }, { "text" => "its child" }], [peer.hear_of(id), peer.hear_of(id)] }
  end

  def test_broadcasts_while_workers_are_replaced
    wait_for_sockets
    outside = publisher
    restart do |booted|
      300.times { |number| broadcast(outside, "nowhere", number) }
      booted.call
      100.times { |number| broadcast(outside, "nowhere", number) }
    end
    members = members(4, name)
    broadcast(outside, name, "the new ones")
    members.each { |peer, id| assert_equal({ "text" => "the new ones" }, peer.hear_of(id)) }
  end

  def test_what_a_publisher_refuses
    wait_for_sockets
    assert_raises(ArgumentError) { publisher.publish("x", "x" * ((1 << 20) + 1)) }
    Dir.mktmpdir do |other|
      error = assert_raises(Rondo::Rails::Cable::NoServer) { broadcast(publisher(other), name, "nobody") }
      assert_equal "no server listens in #{other}", error.message
    end
    assert_equal [0o700, 0o600], [File.stat(folder), File.stat(sockets.first)].map { |stat| stat.mode & 0o777 }
  end

  SOON = File.read(File.join(ServerProcess::ROOT, "docs/RAILS.md"))[/^export (function reconnectSoon.*?^}\n)/m, 1]
  CABLE = File.join(Gem::Specification.find_by_name("actioncable").gem_dir, "app/assets/javascripts/actioncable.js")
  # The client's own monitor never looks, so only the lines of the page can bring it back.
  STOCK = <<~SCRIPT
    globalThis.seen = [];
    globalThis.echoed = "";
    globalThis.back = (consumer) => { consumer.connection.monitor.constructor.staleThreshold = 86400; return reconnectSoon(consumer); };
    globalThis.consumer = back(ActionCable.createConsumer());
    globalThis.room = consumer.subscriptions.create({ channel: "RoomsChannel", room: "soon" }, {
      connected: () => { globalThis.here = true; seen.push("connected"); },
      disconnected: () => { globalThis.here = false; },
      received: ({ text, echo }) => echo ? globalThis.echoed = echo : seen.push(text)
    });
    import("/turbo.min.js").then(({ cable }) => cable.getConsumer()).then(back).then(() => 0)
  SCRIPT

  # The lines are those of docs/RAILS.md. The page has a consumer of its own, and that of Turbo.
  def test_stock_clients_are_back_soon
    skip "chromium is not installed" unless Chromium.find
    wait_for_sockets
    page = open_turbo("soon #{name}", "cable")
    page.run("#{File.read(CABLE)}; globalThis.#{SOON.sub("function reconnectSoon", "reconnectSoon = function")}; #{STOCK}")
    page.wait_for("seen.length == 1")
    2.times do |round|
      restart(&:call)
      wait_until_back(page, "back #{round}")
      page.wait_for(CONNECTED.fetch("cable"))
      broadcast(publisher, "soon", "round #{round}")
      say_to("soon #{name}", "round #{round}")
      page.wait_for("seen.includes('round #{round}')")
      assert_lines(Array.new(round + 1) { |number| "round #{number}" }, page)
    end
    assert_equal ["connected", "round 0", "connected", "round 1"], page.run("seen.filter((what, at) => #{AGAIN})")
  end

  # A client may be back at a worker that is replaced next, and then it comes back again.
  AGAIN = "what !== 'connected' || seen[at - 1] !== 'connected'"

  # The old workers have gone, so only a new one answers.
  def wait_until_back(page, text)
    page.wait_for("room.perform('echo', { text: '#{text}' }), here && echoed === '#{text}'")
  end

  # Two generations of workers, and clients of both protocols; nothing is lost and nothing comes twice.
  def test_clients_go_on_where_they_were
    wait_for_sockets
    room = "kept #{name}"
    clients = Array.new(4) { Resuming.new([server.url], room) }
    readers = clients.map { |client| Thread.new { client.run_to(999) } }
    Timeout.timeout(60) { sleep 0.01 until clients.all? { |client| client.answers.include?("confirm_history") } }
    outside = publisher
    200.times { |number| broadcast(outside, room, number) }
    restart do |booted|
      200.upto(899) { |number| broadcast(outside, room, number) }
      booted.call
    end
    900.upto(999) { |number| broadcast(outside, room, number) }
    heard = readers.map { |reader| reader.join(60)&.value }
    assert_equal [(0..999).to_a] * 4, heard, clients.map { |client| [client.numbers.size, client.numbers.last, client.answers.last(6)] }.inspect
    assert_empty clients.flat_map(&:answers) - %w[confirm_subscription confirm_history]
    assert_operator clients.sum(&:connections), :>, 4
  end

  # The browser comes back by itself, and says which event it saw last.
  def test_turbo_by_events_goes_on_where_it_was
    skip "chromium is not installed" unless Chromium.find
    room = "kept #{name}"
    pages = Array.new(2) { open_turbo(room, "events") }
    wait_for_sockets
    restart do |booted|
      40.times { |number| say_to(room, number) }
      booted.call
    end
    40.times { |number| say_to(room, 40 + number) }
    pages.each { |page| assert_lines((0..79).map(&:to_s), page) }
  end

  # An event that has no data says from when on.
  def test_an_event_stream_without_events_goes_on_too
    path, = source_of("kept #{name}")
    first = open_events(server, path)
    id = first.slice!(/^id: ?(\d+)\n/, 1)
    say_to("kept #{name}", "missed")
    assert_includes open_events(server, path, "Last-Event-ID: #{id}\r\n", "</turbo-stream>\n\n"), "<li>missed</li>"
  end

  # What a command says of history is of that command.
  def test_an_action_that_streams_again_gets_nothing_twice
    wait_for_sockets
    peer = cable({}, protocols: EXTENDED).welcomed
    id = JSON.generate({ channel: "RoomsChannel", room: "kept #{name}" })
    peer.command("subscribe", id, history: { since: Time.now.to_i - 1 })
    assert_equal %w[confirm_subscription confirm_history], [peer.hear["type"], peer.hear["type"]].sort.reverse
    broadcast(publisher, "kept #{name}", 1)
    assert_equal({ "text" => 1 }, peer.hear_of(id))
    room = "room kept #{name}"
    peer.perform(id, "quiet", room: room).perform(id, "other", room: room).perform(id, "echo", text: "now")
    assert_equal "now", peer.hear_of(id)["echo"]
    broadcast(publisher, "kept #{name}", 2)
    assert_equal({ "text" => 2 }, peer.hear_of(id))
  end

  # An old worker that still has a request takes no message any more; a process that begins then finds the new ones.
  def test_publishers_that_come_while_workers_end
    wait_for_sockets
    Dir.mktmpdir do |flags|
      held = Array.new(4) { |number| hold("#{flags}/#{number}") }
      restart do |booted|
        booted.call(1)
        100.times { |number| broadcast(publisher, "nowhere", number) }
        held.each { |client, flag| File.write(flag, "") && client.close }
      end
    end
  end

  # A request that goes on until the file is there.
  def hold(flag)
    client = RawClient.open(server.url)
    client.write("GET /linger?flag=#{flag} HTTP/1.1\r\nHost: #{URI(server.url).authority}\r\n\r\n")
    Timeout.timeout(60) { sleep 0.01 until File.exist?("#{flag}.here") }
    [client, flag]
  end

  def test_history_that_is_gone
    peer = cable({}, protocols: EXTENDED).welcomed
    wait_for_sockets
    id = JSON.generate({ channel: "RoomsChannel", room: "kept #{name}" })
    peer.command("subscribe", id, history: { streams: { "room kept #{name}" => { epoch: "rondo", offset: 12 } } })
    assert_equal "confirm_subscription", peer.hear["type"]
    broadcast(publisher, "kept #{name}", 1)
    assert_equal({ "type" => "reject_history", "identifier" => id }, peer.hear)
    assert_equal({ "text" => 1 }, peer.hear_of(id))
  end

  # Another subscription of the same client, which gets what is old.
  def test_who_asks_for_no_history_gets_none
    wait_for_sockets
    peer = cable({}, protocols: EXTENDED).welcomed
    assert_match(/\A\h{32}\z/, peer.session)
    broadcast(publisher, "kept #{name}", "old")
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    sleep 0.1 until Process.clock_gettime(Process::CLOCK_MONOTONIC) - began > 1.1 # how exactly times are known
    live = peer.subscribe(room: "kept #{name}")
    all = peer.ask("RoomsChannel", room: "kept #{name}", all: true)
    assert_equal "confirm_subscription", peer.hear["type"]
    peer.command("unsubscribe", all).command("subscribe", all, history: { since: Time.now.to_i - 60 })
    heard = Array.new(3) { peer.hear }
    assert_equal [[all, { "text" => "old" }]], heard.filter_map { |message| message.values_at("identifier", "message") if message["message"] }
    broadcast(publisher, "kept #{name}", "new")
    assert_equal [live, all].sort, Array.new(2) { peer.hear.then { |message| message["identifier"] if message["message"] == { "text" => "new" } } }.sort
  end

  def test_hostile_history
    [1, "x", [], { since: "x" }, { since: -1, streams: 3 }, { streams: { "room kept x" => { epoch: "rondo", offset: "x" } } },
     *[1 << 53, 1 << 80].map { |since| { since: since, streams: { "room kept x" => { epoch: "other", offset: 1 } } } }].each do |history|
      peer = cable({}, protocols: EXTENDED).welcomed
      id = JSON.generate({ channel: "RoomsChannel", room: "kept x" })
      peer.command("subscribe", id, history: history).command("pong", id).command("history", id, history: history)
      assert_equal %w[confirm_subscription reject_history], [peer.hear["type"], peer.hear["type"]]
      peer.perform(id, "echo", text: "still here")
      assert_equal "still here", peer.hear_of(id)["echo"]
    end
  end

  # What is no frame ends the connection, and the server goes on.
  def test_hostile_guests
    wait_for_sockets
    path = sockets.first
    ["\xff\xff\xff\xff\0\1x".b, [1, 0].pack("Nn"), [10, 9].pack("Nn")].each do |bytes|
      UNIXSocket.open(path) do |socket|
        socket.write(bytes)
        assert_empty socket.read
      end
    end
    UNIXSocket.open(path) { |socket| socket.write([3, 1].pack("Nn")) } # and never the rest
    dead = File.join(folder, "#{dead_pid}-00.sock")
    UNIXServer.new(dead).close
    20.times { broadcast(publisher, name, "still there") }
    refute_path_exists dead
  end

  def dead_pid
    pid = Process.spawn("true")
    Process.wait(pid)
    pid
  end
end
