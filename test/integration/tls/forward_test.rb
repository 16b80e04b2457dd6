# frozen_string_literal: true

# A request of a connection that cannot move, because it is encrypted, does not wait for a stuck worker: another worker
# answers it, through the stuck one.
# SPDX-License-Identifier: MIT

require_relative "tls_case"
require "support/gate"

class TLSForwardTest < TLSCase
  include Gate

  FORWARD = <<~RUBY
    # Waits for the file, and still lets others run.
    UNTIL_THERE = ->(name) { IO.select(nil, nil, nil, 0.01) until File.exist?(name) }

    class Parts
      def initialize(name) = @name = name
      def each
        yield "first "
        UNTIL_THERE.call(@name)
        yield "last"
      end
      def close = warn("closed \#{Process.pid}")
    end

    run lambda { |env|
      path = env["PATH_INFO"]
      warn "inside \#{Process.pid}" if path.match?(%r{\\A/(?:loop|c|sleep)})
      warn "at \#{path} \#{Process.pid}" if path.match?(%r{\\A/(?:held|parts|endless)})
      case path
      when "/loop" then nil until File.exist?("go")
      when "/c" then GATE.call
      when "/sleep" then UNTIL_THERE.call("go")
      when "/held" then UNTIL_THERE.call("answer")
      when "/parts" then next [200, {}, Parts.new("answer")]
      when "/endless"
        finished = ->(_env, _status, _headers, error) { warn "finished \#{error.class}" }
        env["rack.response_finished"] << finished
        next [200, {}, Enumerator.new { |parts| loop { parts << "x" * 65_536 } }]
      when "/env" then next [200, {}, [env.values_at("rack.url_scheme", "HTTPS", "SERVER_PORT", "REMOTE_ADDR").join(" ")]]
      when "/size" then next [200, {}, [env["rack.input"].read.bytesize.to_s]]
      when "/hijack"
        io = env["rack.hijack"].call
        Thread.new { io.write("HTTP/1.1 200 OK\\r\\nconnection: close\\r\\n\\r\\n\#{Process.pid} \#{io.readline}"); io.close }
        next [-1, {}, []]
      when "/kill" then Process.kill("KILL", Process.pid)
      end
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  def setup
    super
    write "config.ru", Gate::APP + FORWARD
  end

  def cluster(*words, workers: 2, **options)
    server = secure("-w", workers.to_s, "-t", "1", *words, **options)
    server.wait_for_log(/(booted in.*){#{workers}}/m)
    server
  end

  # @return [OpenSSL::SSL::SSLSocket]
  def dial(server)
    context = OpenSSL::SSL::SSLContext.new
    context.set_params(ca_file: @certificates.authority)
    secure = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", server.port), context)
    secure.hostname = "localhost"
    secure.sync_close = true
    (@sockets ||= []) << secure
    secure.connect
  end

  def say(socket, path = "/", fields: "", method: "GET")
    socket.write("#{method} #{path} HTTP/1.1\r\nHost: localhost\r\n#{fields}\r\n")
  end

  # @return [Array(String, String)] head and body
  def hear(socket, body: true)
    head = in_time { socket.gets("\r\n\r\n") } or flunk "the connection ended"
    length = body ? head[/^content-length: (\d+)/, 1].to_i : 0
    [head, length.positive? ? in_time { socket.read(length) } : ""]
  end

  def in_time(&block)
    Timeout.timeout(PATIENCE, &block)
  end

  # @return [Integer] the process that answered
  def ask(socket, path = "/", **options)
    say(socket, path, **options)
    hear(socket).last.to_i
  end

  # Sends one of the connections into a call that does not end. @return [Integer] the process that is stuck
  def pin(server, socket, path = "/loop")
    say(socket, path)
    server.wait_for_log(/^inside (\d+)$/)[1].to_i
  end

  %w[/loop /c].each do |path|
    define_method("test_nobody_waits_behind_a_worker_that_is_in_a#{path.tr("/", "_")}") do
      server = cluster
      sockets = Array.new(8) { dial(server) }
      assert_equal 2, sockets.map { |socket| ask(socket) }.uniq.size
      pinned = pin(server, sockets.first, path)
      3.times do
        sockets.drop(1).each { |socket| say(socket) }
        sockets.drop(1).each { |socket| refute_equal pinned, hear(socket).last.to_i }
      end
      open_gate
      assert_equal pinned, hear(sockets.first).last.to_i
    end
  end

  # Two workers; connections of the one that is stuck; and the other one.
  def stuck_cluster(*words, count: 4)
    server = cluster(*words)
    sockets = Array.new(2 * count) { dial(server) }
    by = sockets.group_by { |socket| ask(socket) }
    assert_equal 2, by.size
    pinned, mine = by.first
    @stuck = mine.shift
    assert_equal pinned, pin(server, @stuck, "/sleep")
    [server, mine, by.keys.last, pinned]
  end

  def test_what_the_application_sees
    server, (socket,), other, = stuck_cluster
    say(socket, "/env")
    assert_equal "https on 443 127.0.0.1", hear(socket).last
    say(socket, "/size", method: "POST", fields: "Content-Length: 20000\r\n")
    socket.write("x" * 20_000)
    assert_equal "20000", hear(socket).last
    assert_equal other, ask(socket)
    open_gate # only Ruby writes to the log
    server.wait_for_log(/This worker is stuck, and others answer/)
    assert_equal 1, server.log.scan("This worker is stuck").size
  end

  def test_a_client_that_leaves
    server, (socket,), other, = stuck_cluster
    say(socket, "/endless")
    in_time { socket.readpartial(100) }
    server.wait_for_log(%r{^at /endless #{other}$})
    socket.close
    server.wait_for_log(/^finished /)
  end

  def test_a_client_that_is_slow
    server, (socket,), other, = stuck_cluster
    say(socket, "/endless")
    in_time { socket.gets("\r\n\r\n") }
    read = 0
    # More than all that can be queued on the way.
    read += in_time { socket.readpartial(65_536) }.bytesize while read < 10_000_000
    refute_match(/^finished/, server.log)
    resident = File.read("/proc/#{other}/status")[/VmRSS:\s+(\d+)/, 1].to_i
    assert_operator resident, :<, 300_000
  end

  def test_a_sibling_that_is_killed_before_its_answer
    server, (socket, second), other, pinned = stuck_cluster
    say(socket, "/kill", method: "POST", fields: "Content-Length: 0\r\n")
    head, body = hear(socket)
    assert_match(%r{\AHTTP/1.1 502 Bad Gateway\r\n}, head)
    assert_equal "the worker that answered the request has ended\n", body
    server.wait_for_log(/No whole answer for 127\.0\.0\.1/) if open_gate
    server.wait_for_log(/Worker \d \(PID: (?!#{other}|#{pinned})\d+\) booted/)
    refute_equal other, ask(socket)
    assert_operator ask(second), :>, 0
  end

  def test_a_sibling_that_is_killed_in_its_answer
    server, (socket,), other, = stuck_cluster
    say(socket, "/parts")
    in_time { socket.gets("\r\n\r\n") }
    assert_equal "6\r\nfirst \r\n", in_time { socket.readpartial(100) }
    Process.kill("KILL", other)
    error = assert_raises(OpenSSL::SSL::SSLError) { in_time { socket.read } }
    assert_match(/unexpected eof/, error.message) # no close_notify: a client can tell that the answer is cut
    server.wait_for_log(/(?:booted.*){3}/m)
  end

  # The stuck worker is back, and its application has stopped being asked, before the answer has come.
  def test_the_worker_wakes_up_meanwhile
    server, (socket, second), other, pinned = stuck_cluster
    say(socket, "/held")
    say(socket)
    server.wait_for_log(%r{^at /held #{other}$})
    open_gate
    assert_equal pinned, hear(@stuck).last.to_i
    assert_equal pinned, ask(second)
    write "answer", ""
    assert_equal other, hear(socket).last.to_i
    assert_equal pinned, hear(socket).last.to_i
  end

  { "TERM" => /Gracefully/, "USR1" => /phase: 1/ }.each do |signal, line|
    define_method("test_an_answer_that_ends_while_all_workers_stop_by_#{signal}") do
      server, (socket,), other, = stuck_cluster
      say(socket, "/parts")
      in_time { socket.gets("\r\n\r\n") }
      server.wait_for_log(%r{^at /parts #{other}$})
      server.signal(signal)
      server.wait_for_log(line)
      write "answer", ""
      open_gate
      body = +""
      body << in_time { socket.readpartial(100) } until body.end_with?("0\r\n\r\n")
      assert_equal "6\r\nfirst \r\n4\r\nlast\r\n0\r\n\r\n", body
    end
  end

  def test_a_hijack
    server, (socket,), other, = stuck_cluster
    say(socket, "/hijack")
    socket.write("hello\n")
    assert_match(/\r\n\r\n#{other} hello\n\z/, in_time { socket.read })
    refute_nil server
  end

  def test_many
    server, sockets, other, pinned = stuck_cluster(count: 90)
    sockets.each { |socket| say(socket) }
    sockets.each { |socket| assert_equal other, hear(socket).last.to_i }
    open_gate
    sockets.each { |socket| assert_includes [other, pinned], ask(socket) }
    refute_nil server
  end

  def test_one_process
    server = secure("-t", "1")
    stuck, waits = Array.new(2) { dial(server) }
    pinned = pin(server, stuck, "/sleep")
    say(waits)
    open_gate
    assert_equal pinned, hear(waits).last.to_i
    assert_equal pinned, hear(stuck).last.to_i
  end

  # What another process could not tell the application.
  def test_clients_with_certificates_wait
    server = secure("-w", "2", "-t", "1", query: "#{@pair.query}&ca=#{@certificates.authority}&verify_mode=peer")
    server.wait_for_log(/(booted in.*){2}/m)
    by = Array.new(4) { dial(server) }.group_by { |socket| ask(socket) }
    pinned, (stuck, waits) = by.first
    assert_equal pinned, pin(server, stuck, "/sleep")
    say(waits)
    open_gate
    assert_equal pinned, hear(waits).last.to_i
  end
end
