# frozen_string_literal: true

# Children of the application that live on: clients and the server's addresses must not depend on them. They have copies
# of all descriptors until they close them.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/raw_client"
require "support/server_process"
require "support/websocket_peer"
require "tmpdir"
require "net/http"

class ChildrenTest < Minitest::Test
  # Children that live on do not hold the server's output, which the tests read.
  APP = <<~RUBY
    require "socket"

    module Kernel
      def live_on
        $stdout.reopen(File::NULL, "w")
        $stderr.reopen(File::NULL, "w")
        yield if block_given?
        sleep
      end

      def child_status = Process.wait2(fork { yield }).last
    end

    class Peer
      def on_message(client, _data) = client.write(fork { live_on }.to_s)
    end

    run lambda { |env|
      text =
        case env["PATH_INFO"]
        when "/fork" then fork { live_on }
        when "/thread" then Thread.new { fork { live_on } }.value
        when "/spawn" then spawn("sleep 1000", out: File::NULL, err: File::NULL)
        when "/popen" then IO.popen("-", "r+") { |io| io ? io.pid : live_on }
        when "/ends"
          child_status { exit!(Dir.children("/proc/self/fd").size.positive? ? 7 : 8) }.exitstatus
        when "/opens" # numbers that were closed are used again: nothing of the server's may use them
          child_status do
            files = Array.new(20) { File.open("/dev/null") }
            GC.start
            exit!(files.all? { |file| file.stat.chardev? } ? 7 : 8)
          end.exitstatus
        when "/hijack"
          io = env["rack.hijack"].call
          fork { live_on { io.write("HTTP/1.1 200 OK\\r\\n\\r\\nfrom the child \#{$$}") && io.close } }
          io.close
        when "/listens"
          child_status do
            Rondo::Server.new(->(_) {}).listen("tcp://127.0.0.1:0")
            exit!(7)
          end.exitstatus
        when "/push" then env["rack.upgrade"] = Peer.new
        else $$
        end
      [200, {}, [text.to_s]]
    }
  RUBY

  WAYS = %w[/fork /thread /spawn].freeze

  def setup
    @folder = Dir.mktmpdir
    @app = File.join(@folder, "children.ru")
    File.write(@app, APP)
    @children = []
    @clients = []
  end

  def teardown
    @clients.each(&:close)
    @children.each { |pid| Process.kill("KILL", pid) }
    FileUtils.rm_rf(@folder)
  end

  # The end of the connection is the end of the answer.
  def test_a_client_gets_the_end_of_its_answer
    ServerProcess.run(@app) do |server|
      WAYS.each { |path| assert_lives(older_client(server, path).read_all.split("\r\n\r\n").last.to_i) }
    end
  end

  def test_other_clients_get_their_ends
    ServerProcess.run(@app, settings: { keep_alive_timeout_ms: 1000 }) do |server|
      others = Array.new(5) { raw(server) }
      others.each { |other| assert_equal server.pid.to_s, other.request(get("/")).body }
      assert_lives(Net::HTTP.get("127.0.0.1", "/fork", server.port).to_i)
      others.each { |other| assert_equal "", other.read_all }
    end
  end

  def test_an_upgraded_client_gets_its_end
    ServerProcess.run(@app) do |server|
      peer = WebsocketPeer.new(server.url, "push")
      assert_lives(peer.ask("fork").to_i)
      server.stop
      assert_equal [1001, "going away"], peer.hear_close
      assert_nil peer.next_frame
    ensure
      peer&.close
    end
  end

  def test_nobody_listens_after_the_end
    skip "needs the server's own port: the proxy of the XOR transport still listens" if XorProxy.on?
    [{}, { poll_only: true }].each do |settings|
      ServerProcess.run(@app, settings: settings, unix: true) do |server|
        path, port = server.unix_url.delete_prefix("unix://"), server.port
        WAYS.each { |way| assert_lives(Net::HTTP.get("127.0.0.1", way, port).to_i) }
        File.link(path, other = File.join(@folder, "socket"))
        @children.each { |child| assert_apart(server, child) }
        server.stop
        assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", port) }
        assert_raises(Errno::ECONNREFUSED) { UNIXSocket.new(other) }
        File.delete(other)
      end
    end
  end

  def test_nobody_listens_after_the_end_of_workers
    skip "needs the server's own port: the proxy of the XOR transport still listens" if XorProxy.on?
    ServerProcess.run(@app, settings: { workers: 2 }) do |server|
      WAYS.each { |way| assert_lives(Net::HTTP.get("127.0.0.1", way, server.port).to_i) }
      port = server.port
      @children.each { |child| wait_until_closed(child, [listener(port)]) }
      server.stop
      assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", port) }
      @children.each { |pid| assert_lives(pid, keep: false) }
    end
  end

  def test_a_child_has_no_socket_of_the_server
    ServerProcess.run(@app) do |server|
      others = Array.new(3) { raw(server).tap { |client| client.request(get("/")) } }
      child = Net::HTTP.get("127.0.0.1", "/fork", server.port).to_i
      assert_lives(child)
      assert_operator sockets(server.pid).size, :>=, 1 + others.size
      assert_apart(server, child)
    end
  end

  def test_a_hijacked_connection_lives_on_in_the_child
    ServerProcess.run(@app) do |server|
      client = raw(server)
      client.write(get("/hijack"))
      answer = client.read_all
      child = answer[/\d+\z/].to_i
      assert_equal "HTTP/1.1 200 OK\r\n\r\nfrom the child #{child}", answer
      assert_lives(child)
    end
  end

  def test_what_a_child_opens_is_its_own
    ServerProcess.run(@app) do |server|
      3.times { assert_equal "7", Net::HTTP.get("127.0.0.1", "/opens", server.port) }
      assert_equal "7", Net::HTTP.get("127.0.0.1", "/listens", server.port)
    end
  end

  # Other threads hold the lock of the loop most of the time. A child must not wait for it.
  def test_forks_while_others_are_served
    ServerProcess.run(@app, settings: { max_threads: 8 }) do |server|
      over = false
      others = Array.new(6) { Thread.new { Net::HTTP.start("127.0.0.1", server.port) { |http| ask_until(http) { over } } } }
      forking = Array.new(2) { Thread.new { Array.new(15) { Net::HTTP.get("127.0.0.1", "/ends", server.port) } } }
      assert_equal ["7"] * 30, forking.flat_map(&:value)
      over = true
      assert_equal [server.pid.to_s], others.flat_map(&:value).uniq
    end
  end

  private

  def ask_until(http)
    answers = []
    answers << http.get("/").body until yield
    answers
  end

  def raw(server)
    @clients << RawClient.new(server.url)
    @clients.last
  end

  def get(path)
    "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n"
  end

  def older_client(server, path)
    raw(server).tap { |client| client.write("GET #{path} HTTP/1.0\r\n\r\n") }
  end

  # Its parent may have ended, but the child has not.
  def assert_lives(pid, keep: true)
    assert_operator pid, :>, 1
    Process.kill(0, pid)
    @children << pid if keep
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def assert_apart(server, child)
    wait_until_closed(child, sockets(server.pid))
    assert_empty sockets(child) & sockets(server.pid)
  end

  # The child may not have had the CPU yet.
  def wait_until_closed(child, theirs)
    limit = now + 30
    IO.select(nil, nil, nil, 0.01) until !sockets(child).intersect?(theirs) || now > limit
  end

  # proc(5): the local address, the state and the inode.
  def listener(port)
    rows = File.readlines("/proc/net/tcp").map(&:split)
    "socket:[#{rows.find { |row| row[1].end_with?(format(":%04X", port)) && row[3] == "0A" }.fetch(9)}]"
  end

  def sockets(pid)
    Dir.children("/proc/#{pid}/fd").filter_map do |number|
      File.readlink("/proc/#{pid}/fd/#{number}")[/\Asocket:.*/]
    rescue Errno::ENOENT
      nil
    end
  end
end
