# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# A call that computes gives way to requests, messages and timers that wait (server/watch.c, ruby/rb_gvl.c).

require_relative "rack_case"
require "timeout"
require "support/websocket_peer"

class GivesWayTest < RackCase
  REQUESTS = 60
  # Of the call that computes, at most. Ruby alone lets a request in after 0.1 s each.
  CPU_SECONDS = 5

  def cpu_seconds
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
  end

  # Computes until so many requests were answered meanwhile.
  def compute
    begun = cpu_seconds
    @begun << true
    nil while @answered < REQUESTS && cpu_seconds - begun < CPU_SECONDS
    @answered
  end

  # Starts a client in a process of its own: one here would need the same GVL. It pauses so long that the server does not
  # wait for it without releasing the GVL.
  # @return [Proc] lets it go on, and waits for its end
  def start_client(running, begin_by, each)
    script = <<~RUBY
      require "socket"
      socket = TCPSocket.new("127.0.0.1", #{running.port})
      #{begin_by}
      $stdout.puts.then { $stdout.flush }
      $stdin.gets
      #{REQUESTS}.times do
        #{each}
        sleep 0.01
      end
    RUBY
    client = IO.popen([RbConfig.ruby, "--disable-gems", "-e", script], "r+")
    assert_equal "\n", client.gets, "the client is connected"
    -> { client.puts.then { client.read }.then { client.close } }
  end

  def ask(running, path = "/")
    start_client(running, "", <<~RUBY)
      socket.write(#{bytes("GET", path).dump})
      nil until socket.gets == "\\r\\n"
      socket.read(2)
    RUBY
  end

  # Sends a message and waits for its answer.
  def chat(running)
    upgrade = WebsocketPeer::HANDSHAKE.sub("%s", "chat").sub("%s", "")
    start_client(running, <<~RUBY, 'socket.write("\\x81\\x82\\0\\0\\0\\0hi".b); socket.read(4)')
      socket.write(#{upgrade.dump})
      nil until socket.gets == "\\r\\n"
    RUBY
  end

  def on_message(client, _message)
    client.write("ok")
    @answered += 1
  end

  def answer
    [200, { "content-length" => "2" }, ["ok"]].tap { @answered += 1 }
  end

  def start_counting
    @begun = Queue.new
    @answered = 0
    start(lint: false, max_threads: 3) do |env|
      case env["PATH_INFO"]
      when "/compute" then [200, {}, [compute.to_s]]
      when "/limited" then [200, {}, [Timeout.timeout(1) { compute }.to_s]]
      when "/nap" then answer.tap { sleep 0.001 }
      when "/chat" then [200, {}, []].tap { env["rack.upgrade"] = self }
      else answer
      end
    rescue Timeout::Error
      @over = true
      [200, {}, ["limit"]]
    end
  end

  # Calls what the block returns beside a call that computes. All that it waits for comes before the call gives up.
  def beside_a_call_that_computes
    running = start_counting
    beside = yield running
    client = connect
    client.write(bytes("GET", "/compute"))
    take(@begun, "the call computes")
    beside.call
    assert_equal REQUESTS.to_s, client.response.body
  end

  def test_requests
    beside_a_call_that_computes { |running| ask(running) }
  end

  # Each of them needs the GVL again when its sleep is over.
  def test_requests_that_sleep
    beside_a_call_that_computes { |running| ask(running, "/nap") }
  end

  def test_messages
    beside_a_call_that_computes { |running| chat(running) }
  end

  def test_timers
    beside_a_call_that_computes { -> { Rondo.run_every(10, REQUESTS) { @answered += 1 } } }
  end

  # Ruby drops what is raised while a thread gives way in the wrong manner. In a fiber Timeout ends waits alone.
  def test_what_is_raised_in_such_a_call_arrives
    needs_threads
    running = start_counting
    client = connect
    client.write(bytes("GET", "/limited"))
    take(@begun, "the call computes")
    @answered = -1_000_000
    ask(running).call until @over
    assert_equal "limit", client.response.body
  end
end
