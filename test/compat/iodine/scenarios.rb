# frozen_string_literal: true

# What is done with each snippet: the same on Rondo and on iodine 0.7.60. `transcripts/` has what iodine answered.
# SPDX-License-Identifier: MIT

require_relative "transcript"

module Scenarios
  # How a snippet is run, and the steps of its clients.
  Scenario = Struct.new(:name, :program, :options, :steps) do
    # @param kind [Symbol] :rondo or :iodine
    # @return [String] the transcript
    def run(kind)
      contender = Contender.new(kind, program, **options)
      transcript = Transcript.new(contender)
      steps.call(transcript)
      transcript.to_s
    ensure
      contender&.close
    end
  end

  ALL = {}

  def self.scenario(name, program, **options, &steps)
    ALL[name] = Scenario.new(name, program, options, steps)
  end

  ONE = %w[-t 1 -w 1].freeze

  scenario("readme_chat", "readme_chat.rb") do |t|
    t.get("/")
    ann = t.websocket("Ann").hear
    bob = t.websocket("Bob").hear
    ann.reach([bob], "are you there?")
    bob.reach([ann], "and you?")
    ann.say("hello")
    [ann, bob].each(&:hear)
    bob.say("grüße").hear
    ann.hear
    t.wait_for_output(/^gr.*\n/n)
    t.finish(except: /you/)
  end

  scenario("readme_echo", "readme_echo.rb") do |t|
    ann = t.line("Ann")
    ann.say("hello\n").hear("\n")
    t.wait_for_output(/hello/)
    ann.say("bye\n").hear_end
    t.wait_for_output(/bye/)
    t.finish
  end

  scenario("readme_telnet_chat", "readme_telnet_chat.rb") do |t|
    ann = t.line("Ann").hear("\n")
    ann.say("a\nb\n").hear("again.\n").hear("\n")
    ann.say("Ann\n").hear("joined chat.\n")
    bob = t.line("Bob").hear("\n")
    bob.say("Bob\n").hear("joined chat.\n")
    ann.hear("joined chat.\n").say("hello").hear("hello\n")
    bob.hear("hello\n").say("bye\n").hear_end
    ann.hear("bye\n").hear("left chat.\n")
    t.finish
  end

  scenario("readme_upgrade_tcp", "readme_upgrade_tcp.rb") do |t|
    t.get("/")
    ann = t.line("Ann")
    ann.say("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").hear_status
    ann.say("hello\n").hear("\n")
    t.finish
  end

  scenario("readme_hello", "readme_hello.ru", args: ONE) do |t|
    t.get("/")
    t.finish
  end

  scenario("readme_x_sendfile", "readme_x_sendfile.ru", args: [*ONE, "-www", "."]) do |t|
    t.get("/source")
    t.get("/file")
    t.get("/other")
    t.finish
  end

  scenario("x_sendfile", "x-sendfile.ru", args: [*ONE, "-www", "."]) do |t|
    t.get("/source")
    t.get("/other")
    t.finish
  end

  scenario("redis", "redis.ru", args: ONE) do |t|
    ann = t.websocket("Ann", "Ann").hear
    ann.say("hello").hear
    bob = t.websocket("Bob", "Bob").hear
    ann.hear
    bob.leave
    ann.hear
    t.finish { ann.hear }
  end

  # Programs that end by themselves.
  %w[readme_static readme_initializer readme_restart readme_redis].each do |name|
    scenario(name, "#{name}.rb", waits: false, requires: name == "readme_static" ? [] : ["iodine"]) { |t| t.finish(nil) }
  end

  # Programs that connect to hosts of the internet, where this machine is these hosts.
  STAND_INS = %w[tcp_client readme_client].freeze
  STAND_INS.each do |name|
    scenario(name, "#{name}.rb", waits: false, command: File.join(__dir__, "stand_in.rb")) { |t| t.finish(nil) }
  end

  scenario("hello", "hello.ru", args: ONE) do |t|
    t.get("/")
    t.get("/a?b=c")
    t.finish
  end

  scenario("rack3", "rack3.ru", args: ONE) do |t|
    t.get("/")
    t.finish
  end

  scenario("etag", "etag.ru", args: ONE) do |t|
    t.get("/")
    t.finish
  end

  scenario("echo", "echo.ru", args: ONE) do |t|
    t.get("/")
    ann = t.websocket("Ann").hear
    ann.say("hello").hear
    t.finish { ann.hear.hear }
  end

  scenario("config", "config.ru", args: ONE) do |t|
    t.get("/")
    ann = t.websocket("Ann")
    ann.say("one").hear
    stream = t.stream("Eve")
    ann.say("two").hear
    stream.hear
    t.finish { [ann.hear.hear, stream.hear] }
  end

  scenario("sub_protocols", "sub-protocols.ru", args: ONE) do |t|
    t.get("/")
    ann = t.websocket("Ann", "Ann", fields: { "Sec-WebSocket-Protocol" => "chat" }).hear
    echo = t.websocket("Echo", "", fields: { "Sec-WebSocket-Protocol" => "none, echo" }).hear
    echo.say("hello").hear
    bob = t.websocket("Bob", "", fields: { "Sec-WebSocket-Protocol" => "chat" }).hear
    ann.hear
    bob.say("hi").hear
    ann.hear
    t.websocket("Eve", "", fields: { "Sec-WebSocket-Protocol" => "other" })
    t.finish { [ann.hear, echo.hear] }
  end

  scenario("shootout", "shootout.ru", args: ONE) do |t|
    ann = t.websocket("Ann")
    ann.say('{"type":"echo","payload":"x"}').hear
    ann.say('{"type":"broadcast","payload":"y"}').hear.hear
    ann.say_binary("b\x00\xff").hear.hear
    t.finish
  end

  scenario("async_task", "async_task.ru", args: ONE) do |t|
    ann = t.websocket("Ann", "userID")
    ann.say('{"task":"echo","data":"Hello!"}').hear
    ann.say('{"task":"add","data":[1,2]}').hear
    ann.say("none")
    t.wait_for_output(/none/)
    t.finish
  end

  scenario("pubsub_engine", "pubsub_engine.ru", args: ONE) do |t|
    ann = t.websocket("Ann", "Ann").hear
    bob = t.websocket("Bob", "Bob").hear
    ann.hear.say("hello").hear
    bob.hear
    bob.leave
    ann.hear
    t.finish(sorted: true)
  end

  # Says which state is reached, where, and in which order blocks are called.
  STATES = <<~RUBY
    ROOT = Process.pid
    $states = File.open("states.txt", "a")
    NAMES = %i[pre_start before_fork after_fork enter_child enter_master on_start on_parent_crush on_child_crush
               start_shutdown on_finish]
    NAMES.each do |name|
      2.times do |n|
        Iodine.on_state(name) do
          facts = [Iodine.master?, Iodine.worker?, Iodine.running?].map { |fact| fact ? "t" : "f" }.join
          $states.syswrite("\#{Process.pid == ROOT ? "root" : Iodine.worker? ? "worker" : "other"} \#{name} \#{n} \#{facts}\n")
        end
      end
    end
    Iodine.threads = 1
    Iodine.workers = WORKERS
    Iodine.listen(service: :http, port: "3000") { [200, {}, ["hello"]] }
    p Iodine.start
    p [Iodine.running?, Process.pid == ROOT]
  RUBY

  scenario("states_of_one", "states.rb", text: STATES.sub("WORKERS", "1"), requires: ["iodine"]) do |t|
    t.get("/")
    t.finish
    t.note_file("states.txt")
  end

  scenario("states_of_a_worker", "states.rb", text: STATES.sub("WORKERS", "2"), requires: ["iodine"]) do |t|
    t.get("/")
    t.wait_for_file("states.txt", /(?:worker on_start 1.*){2}/m)
    t.finish
    t.note_file("states.txt") { |lines| lines.grep(/^worker/).grep_v(/parent_crush/).tally.map { |line, count| "#{count} #{line}" } }
  end

  # What comes when at the end, with a client that is still there.
  SHUTDOWN = <<~RUBY
    $lines = File.open("lines.txt", "a")
    NOTE = ->(what) { $lines.syswrite("\#{what}\n") }
    %i[start_shutdown on_finish].each { |name| Iodine.on_state(name) { NOTE.call(name) } }
    module Client
      def self.on_open(client) = client.write("hello")
      def self.on_shutdown(_) = NOTE.call("on_shutdown")
      def self.on_close(_) = NOTE.call("on_close")
    end
    Iodine.threads = Iodine.workers = 1
    Iodine.listen(service: :raw, port: "3000", handler: -> { Client })
    Iodine.start
  RUBY

  scenario("shutdown", "shutdown.rb", text: SHUTDOWN, requires: ["iodine"]) do |t|
    ann = t.line("Ann").hear("hello")
    t.finish { ann.hear_end }
    t.note_file("lines.txt") { |lines| lines.drop_while { |line| line != "start_shutdown" } } # others have looked who listens
  end

  # Tasks and timers, which one thread does in order.
  # The names are older than the times. With less, `inner` may come later than a timer.
  TASKS = <<~RUBY
    Iodine.threads = Iodine.workers = 1
    order = []
    Iodine.run { order << :run }
    Iodine.run_after(0) { order << :after_0 }
    Iodine.run_after(1000) { order << :after_30 }
    Iodine.run_after(500) { order << :after_10 }
    Iodine.defer { Iodine.run { order << :inner }; order << :defer }
    Iodine.run { raise "nobody minds" }
    Iodine.run_every(1100, 3) { Iodine.stop if (order << :every).count(:every) == 3 }
    Iodine.listen(service: :http, port: "3000") { [200, {}, []] }
    Iodine.start
    puts order.inspect
  RUBY

  scenario("tasks", "tasks.rb", text: TASKS, requires: ["iodine"], waits: false) { |t| t.finish(nil) }

  # What is published before the start reaches those who have subscribed before.
  PUBLISHED = <<~RUBY
    Iodine.threads = Iodine.workers = 1
    Iodine.subscribe("news") { |channel, message| puts "\#{channel}: \#{message}" }
    Iodine.subscribe("n*", match: :redis) { |channel, message| puts "pattern, \#{channel}: \#{message}" }
    p Iodine.publish("news", "one"), Iodine.publish("none", "two"), Iodine.publish("news", "three", false)
    p Iodine::PubSub::PROCESS.publish("news", "four").class, Iodine.publish("news", "five", Iodine::PubSub::PUBLISH2ROOT)
    p Iodine.publish("news", "six", Iodine::PubSub::SIBLINGS)
    Iodine.run_after(1000) { Iodine.stop }
    Iodine.listen(service: :http, port: "3000") { [200, {}, []] }
    Iodine.start
  RUBY

  scenario("published_before", "published.rb", text: PUBLISHED, requires: ["iodine"], waits: false) { |t| t.finish(nil, sorted: true) }

  # What is asked for before the start runs in the root and in each worker.
  EVERYWHERE = <<~RUBY
    ROOT = Process.pid
    $lines = File.open("lines.txt", "a")
    note = ->(what) { $lines.syswrite("\#{what} in a \#{Process.pid == ROOT ? "root" : "worker"}\\n") }
    Iodine.threads = 1
    Iodine.workers = 2
    Iodine.run { note.call("run") }
    Iodine.run_after(20) { note.call("run_after") }
    Iodine.run_every(20, 2) { note.call("run_every") }
    Iodine.run { Iodine.run { note.call("run in run") } }
    Iodine.subscribe("news") { |_, message| $heard ||= note.call(message) || true }
    Iodine.run_every(50) { Iodine.publish("news", "message") if Process.pid == ROOT }
    Iodine.listen(service: :http, port: "3000") { [200, {}, []] }
    Iodine.start
  RUBY

  scenario("everywhere", "everywhere.rb", text: EVERYWHERE, requires: ["iodine"]) do |t|
    t.wait_for_file("lines.txt", /(?:.*\n){18}/)
    t.finish
    t.note_file("lines.txt") { |lines| lines.tally.map { |line, count| "#{count} #{line}" }.sort }
  end

  # Both ends of connections whose handshake decides about the handler. Keys with a password.
  PROTOCOLS = <<~RUBY
    require #{File.expand_path("../../support/certificates", __dir__).inspect}
    certificates = Certificates.new(".")
    certificates.pair("own", password: "secret")

    $lines = File.open("lines.txt", "a")
    Talk = Struct.new(:name, :words) do
      def note(*words) = $lines.syswrite([name, *words].join(" ") + "\n")
      def on_open(client)
        note("open")
        client.write(words) if words
      end
      def on_message(client, data)
        note("heard", data)
        client.write("\#{name} answers") unless words
      end
      def on_close(client) = note("close", client.class)
    end
    def tls(side, names, **certificate)
      made = certificate.empty? ? Iodine::TLS.new : Iodine::TLS.new(certificate)
      names.each { |name| made.on_protocol(name) { Talk.new("\#{side} \#{name}", ("hello" if side == "client")) } }
      made
    end
    Iodine.threads = Iodine.workers = 1
    Iodine.listen(port: "3000", service: SERVICE, tls: tls("server", %w[one two], server_name: "localhost", certificate: "own.pem", private_key: "own.key.pem", password: "secret")) { Talk.new("unused") }
    [[%w[one], "tls"], [%w[three two], "tls"], [%w[two], "wss"]].each do |names, scheme|
      client = tls("client", names)
      client.trust("authority.pem")
      Iodine.on_state(:on_start) { Iodine.connect(url: "\#{scheme}://localhost:3000/", tls: client, handler: Talk.new("unused", "?")) }
    end
    Iodine.start
  RUBY

  %w[raw https].each do |service|
    scenario("protocols_#{service}", "protocols.rb", text: PROTOCOLS.sub("SERVICE", ":#{service}"), requires: ["iodine"]) do |t|
      t.wait_for_file("lines.txt", /\A(?:.*\n){12}/)
      t.finish
      t.note_file("lines.txt") { |lines| lines.tally.map { |line, count| "#{count} #{line}" }.sort }
    end
  end

  # How far a message goes: from a worker, and then from the root.
  REACHES = <<~RUBY
    ROOT = Process.pid
    $lines = File.open("lines.txt", "a")
    Iodine.threads = 1
    Iodine.workers = 2
    Iodine.subscribe("own") do |_, message|
      $lines.syswrite("\#{message} in a \#{Process.pid == ROOT ? "root" : "worker"} \#{Process.pid}\n")
      if message == "CLUSTER" && Process.pid == ROOT
        Iodine.publish("own", "DOWN", Iodine::PubSub::SIBLINGS)
        Iodine.publish("own", "UP", Iodine::PubSub::PUBLISH2ROOT)
        Iodine.publish("own", "HERE", false)
      end
    end
    Iodine.run_every(50) { Iodine.publish("own", "ready") if Process.pid == ROOT }
    Iodine.listen(service: :http, port: "3000") do |env|
      name = env["PATH_INFO"].delete("/")
      Iodine.publish("own", name, Iodine::PubSub.const_get(name))
      [200, {}, []]
    end
    Iodine.start
  RUBY

  scenario("reaches", "reaches.rb", text: REACHES, requires: ["iodine"]) do |t|
    t.wait_for_file("lines.txt", /ready in a worker (\d+)\n.*ready in a worker (?!\1)/m)
    %w[SIBLINGS PUBLISH2ROOT PROCESS CLUSTER].each { |name| t.get("/#{name}") }
    t.wait_for_file("lines.txt", /\A(?:(?:ready.*\n)*[A-Z].*\n){11}/)
    t.finish
    t.note_file("lines.txt") { |lines| lines.grep_v(/^ready/).map { |line| line[/.*(?= )/] }.tally.map { |line, count| "#{count} #{line}" }.sort }
  end
end
