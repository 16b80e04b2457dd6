# frozen_string_literal: true

# Applications that fork: the child has copies of the server's objects, but the poller and the sockets belong to the
# parent. The child must not answer, and its end must not take anything from the parent.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/raw_client"
require "support/server_process"
require "tmpdir"
require "net/http"
require "support/websocket_peer"

class ForkTest < Minitest::Test
  # Output that a child has on its way out belongs to the parent, or is dropped.
  APP = <<~RUBY
    STREAM = lambda do |stream|
      stream.write("one;")
      pid = fork or exit
      Process.wait(pid)
      stream.write("two;")
    ensure
      stream.write("last") rescue nil
      stream.close
    end

    class EACH
      def each
        yield "one;"
        pid = fork or exit
        Process.wait(pid)
        yield "two;"
      ensure
        yield "last"
      end
    end

    class BOTH
      def each
        yield "one;"
        pid = fork or return
        Process.wait(pid)
        yield "two"
      end
    end

    # The child has the stack of a thread that does not exist in it.
    class THREAD
      def each(&block)
        yield "one;"
        status = Thread.new { Process.wait2(fork { child(block) }).last }.value
        yield status.success? ? "two" : "the child: \#{status.inspect}"
      end

      def child(block)
        Array.new(20) { Thread.new { sleep 0.001 } }.each(&:join)
        block.call("from the child")
        exit!(1)
      rescue IOError
        exit!(0)
      end
    end

    # The parent closes its body, the child does not: `close` runs once.
    class CLOSED < BOTH
      def initialize(file) = @file = file
      def close = File.write(@file, "\#{$$}\n", mode: "a")
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when "/closed" then next [200, {}, CLOSED.new(env["QUERY_STRING"])]
      when "/closed_return"
        pid = fork
        Process.wait(pid) if pid
        next [200, {}, CLOSED.new(env["QUERY_STRING"])]
      when "/block" then Process.wait(fork { 1 })
      when "/raise" then Process.wait(fork { $stderr.reopen(File::NULL); raise "in the child" })
      when "/return"
        pid = fork or next [200, {}, ["child"]]
        Process.wait(pid)
      when "/stream" then next [200, {}, STREAM]
      when "/each" then next [200, {}, EACH.new]
      when "/both" then next [200, {}, BOTH.new]
      when "/thread" then next [200, {}, THREAD.new]
      end
      [200, { "content-type" => "text/plain" }, ["parent"]]
    }
  RUBY

  def test_the_parent_goes_on
    with_server { |server| ask_all(server) }
  end

  def test_a_body_is_closed_by_the_parent
    with_server do |server, folder|
      %w[closed closed_return].each do |path|
        file = File.join(folder, path)
        assert_equal "one;two", Net::HTTP.get("127.0.0.1", "/#{path}?#{file}", server.port)
        Net::HTTP.get("127.0.0.1", "/", server.port)
        assert_equal "#{server.pid}\n", File.read(file), path
      end
    end
  end

  private

  # With one thread the next request begins after the whole of the one before.
  def with_server
    Dir.mktmpdir do |folder|
      app = File.join(folder, "fork.ru")
      File.write(app, APP)
      ServerProcess.run(app, settings: { max_threads: 1 }) { |server| yield server, folder }
    end
  end

  # The same kept-alive connection throughout: the child's end must not unregister it.
  def ask_all(server)
    Net::HTTP.start("127.0.0.1", server.port) do |http|
      %w[/block / /raise / /return / /return /].each do |path|
        assert_equal "parent", http.get(path).body, path
      end
      %w[/stream /each /stream /each].each { |path| assert_equal "one;two;last", http.get(path).body, path }
      %w[/both /thread /both /thread].each { |path| assert_equal "one;two", http.get(path).body, path }
    end
    assert_equal "parent", Net::HTTP.get("127.0.0.1", "/", server.port)
  end
end

# Bodies that the application has when it forks: parent and child read them independently.
class ForkBodyTest < Minitest::Test
  APP = <<~RUBY
    GO = Queue.new

    def in_child
      reader, writer = IO.pipe
      pid = fork do
        writer.write(yield)
      rescue IOError, SystemCallError => e
        writer.write(e.class)
      ensure
        exit!(0)
      end
      writer.close
      reader.read.tap { Process.wait(pid) }
    end

    # Reads once another call has begun: then the call that left the stream open has ended.
    READ_LATER = lambda do |stream|
      stream.write("begun; ")
      Thread.new do
        GO.pop
        child = in_child { stream.read(5) }
        stream.write("child: \#{child}, parent: \#{stream.read(5)}")
        stream.close
      end
    end

    run lambda { |env|
      input = env["rack.input"]
      text =
        case env["PATH_INFO"]
        when "/go" then GO.push(1) && "gone on"
        when "/stream" then next [200, {}, READ_LATER]
        when "/call" then "child: \#{in_child { input.read(5) }}, parent: \#{input.read(5)}"
        when "/unread" # the parent does not ask for it, but it comes
          File.write(env["QUERY_STRING"], "begun")
          limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
          begin
            child = in_child { input.read(5) }
          end until child == "hello" || Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
          "child: \#{child}"
        end
      [200, {}, [text]]
    }
  RUBY
  BODY = "hello" * 2000

  def setup
    @folder = Dir.mktmpdir
    File.write(File.join(@folder, "bodies.ru"), APP)
    @server = ServerProcess.new(File.join(@folder, "bodies.ru"), settings: { max_threads: 1, body_memory_bytes: 100 })
  end

  def teardown
    @server.stop
    warn @server.log unless passed?
    FileUtils.rm_rf(@folder)
  end

  def test_the_body_of_a_call
    assert_equal "child: hello, parent: hello", post("/call")
  end

  def test_the_body_of_a_stream_that_outlives_its_call
    answer = post("/stream") { Net::HTTP.get("127.0.0.1", "/go", @server.port) }
    assert_equal "begun; child: hello, parent: hello", answer
  end

  def test_a_body_that_came_and_was_not_read
    File.mkfifo(begun = File.join(@folder, "begun"))
    client = RawClient.new(@server.url)
    client.write("POST /unread?#{begun} HTTP/1.1\r\nHost: a\r\nContent-Length: #{BODY.size}\r\nExpect: 100-continue\r\n\r\n")
    assert_equal "begun", File.read(begun)
    assert_equal "child: hello", client.request(BODY).body
  ensure
    client&.close
  end

  private

  # Calls the block once the answer has begun.
  def post(path)
    request = Net::HTTP::Post.new(path)
    request.body = BODY
    Net::HTTP.start("127.0.0.1", @server.port) do |http|
      http.request(request) { |_response| yield if block_given? }.body
    end
  end
end

# With upgraded connections: events that came before the fork are delivered by the parent.
class ForkPushTest < Minitest::Test
  # `fork` without a block at each place where the application is called; the child returns. The wait for the pipe "go"
  # keeps Ruby's lock, and the priority gives a longer time slice, so no other thread takes the loop. Events that come
  # meanwhile are queued, and the same thread delivers them after the fork.
  APP = <<~RUBY
    require "fiddle"

    module Kernel
      # Unbuffered: another thread's child would write a copy of the buffer.
      def note(text) = File.open("told", "a") { |file| file.syswrite("\#{$$} \#{text}\\n") }

      def fork_and_return
        pid = fork
        Process.wait(pid) if pid
      end

      def wait_for_go
        Thread.current.priority = 3
        Fiddle::Function.new(Fiddle.dlopen(nil)["open"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_INT], Fiddle::TYPE_INT,
                             need_gvl: true).call("go", File::RDONLY)
      end
    end

    class Peer
      def on_open(client) = client.subscribe("all")

      def on_message(client, data)
        note "message \#{data}"
        wait_for_go if data == "wait"
        fork_and_return if data.start_with?("fork")
        client.handler = Other.new if data == "change"
        client.write(data)
      end

      def on_close(_client)
        note "on_close"
        fork_and_return
      end
    end

    class Other
      def on_open(client)
        note "on_open"
        client.write("changed")
      end
    end

    Rondo.subscribe("block") do |_channel, data|
      note "published \#{data}"
      fork_and_return
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when "/wait"
        note "waiting"
        wait_for_go
        fork_and_return
      when "/finished"
        %w[one two].each do |name|
          env["rack.response_finished"] << lambda do |*|
            note "finished \#{name}"
            fork_and_return
          end
        end
      when "/error" then raise "on purpose"
      when "/publish" then 3.times { |number| Rondo.publish("block", number.to_s) }
      else env["rack.upgrade"] = Peer.new
      end
      [200, {}, ["\#{$$}"]]
    }
  RUBY
  CONFIG = <<~RUBY
    lowlevel_error_handler do |_error|
      fork_and_return
      [500, {}, ["\#{$$}"]]
    end
  RUBY

  def setup
    @folder = Dir.mktmpdir
    FileUtils.mkdir(File.join(@folder, "public"))
    File.write(File.join(@folder, "public/there"), "there")
    File.mkfifo(File.join(@folder, "go"))
    File.write(File.join(@folder, "push.ru"), APP)
    @server = ServerProcess.new(File.join(@folder, "push.ru"), config: CONFIG, args: ["--public", "public"],
                                                               spawn: { chdir: @folder })
    @peers = []
  end

  def teardown
    @peers.each(&:close)
    @server.stop
    warn @server.log unless passed?
    FileUtils.rm_rf(@folder)
  end

  def test_messages_that_came_while_a_request_forked
    others = Array.new(6) { peer }
    request = Thread.new { get("/wait") }
    eventually_told("waiting")
    others.each_with_index { |other, number| other.say("number #{number}") }
    arrived
    go
    assert_equal @server.pid.to_s, request.value
    others.each_with_index { |other, number| assert_equal "number #{number}", other.hear }
    assert_told("waiting", *Array.new(6) { |number| "message number #{number}" })
  end

  def test_messages_that_came_while_a_callback_forked
    first, *others = Array.new(4) { peer }
    first.say("wait")
    eventually_told("message wait")
    first.say("fork")
    others.each { |other| other.say("fork too") }
    arrived
    go
    assert_equal %w[wait fork], [first.hear, first.hear]
    others.each { |other| assert_equal "fork too", other.hear }
    assert_told("message wait", "message fork", *["message fork too"] * 3)
  end

  def test_a_handler_that_is_changed
    one = peer
    assert_equal "change", one.ask("change")
    assert_equal "changed", one.hear
    assert_told("message change", "on_close", "on_open")
  end

  def test_blocks_of_subscriptions
    get("/publish")
    eventually_told("published 2")
    assert_equal "again", peer.ask("again")
    assert_told("published 0", "published 1", "published 2", "message again")
  end

  def test_callables_of_a_finished_response
    assert_equal @server.pid.to_s, get("/finished")
    eventually_told("finished one")
    assert_told("finished two", "finished one")
  end

  def test_the_answer_to_an_error
    assert_equal @server.pid.to_s, get("/error")
    assert_equal "again", peer.ask("again")
  end

  private

  def peer
    @peers << WebsocketPeer.new(@server.url)
    @peers.last
  end

  def get(path)
    Net::HTTP.get("127.0.0.1", path, @server.port)
  end

  # The server's native thread has read the requests that came before: it answers files, too.
  def arrived
    assert_equal "there", get("/there")
  end

  def go
    File.open(File.join(@folder, "go"), "w").close
  end

  def told
    File.readlines(File.join(@folder, "told"), chomp: true)
  rescue Errno::ENOENT
    []
  end

  def eventually_told(text)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
    until told.include?("#{@server.pid} #{text}")
      flunk "#{text} is not told: #{told}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, 0.01)
    end
  end

  # The parent delivers them once, in any order, because several connections have no order. The parent waits for its
  # child before it continues, so everything that the child did is there by now.
  def assert_told(*texts)
    assert_equal texts.map { |text| "#{@server.pid} #{text}" }.sort, told.sort
  end
end
