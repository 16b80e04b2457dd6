# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# A call that computes gives way to requests that wait (server/watch.c, ruby/rb_gvl.c).

require_relative "rack_case"
require "timeout"

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

  # A client in a process of its own: one here would need the same GVL. It pauses so long that the server does not wait
  # for its next request without releasing the GVL.
  def ask(port)
    script = <<~RUBY
      require "socket"
      socket = TCPSocket.new("127.0.0.1", #{port})
      #{REQUESTS}.times do
        socket.write("GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
        nil until socket.gets == "\\r\\n"
        socket.read(2)
        sleep 0.01
      end
    RUBY
    IO.popen([RbConfig.ruby, "--disable-gems", "-e", script], &:read)
  end

  def start_counting
    @begun = Queue.new
    @answered = 0
    start(lint: false, max_threads: 3) do |env|
      case env["PATH_INFO"]
      when "/compute" then [200, {}, [compute.to_s]]
      when "/limited" then [200, {}, [Timeout.timeout(1) { compute }.to_s]]
      else [200, { "content-length" => "2" }, ["ok"]].tap { @answered += 1 }
      end
    rescue Timeout::Error
      @over = true
      [200, {}, ["limit"]]
    end
  end

  def test_requests_beside_a_call_that_computes
    running = start_counting
    client = connect
    client.write(bytes("GET", "/compute"))
    take(@begun, "the call computes")
    ask(running.port)
    assert_equal REQUESTS.to_s, client.response.body
  end

  # Ruby drops what is raised while a thread gives way in the wrong manner.
  def test_what_is_raised_in_such_a_call_arrives
    running = start_counting
    client = connect
    client.write(bytes("GET", "/limited"))
    take(@begun, "the call computes")
    @answered = -1_000_000
    ask(running.port) until @over
    assert_equal "limit", client.response.body
  end
end
