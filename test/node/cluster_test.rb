# frozen_string_literal: true

# Workers of the Node engine: they share channels and history, come back when they die, and end as they are told.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "open3"
require "socket"
require "support/node_process"
require "support/raw_client"
require "support/websocket_peer"
require "tmpdir"

class NodeClusterTest < Minitest::Test
  APP = File.expand_path("workers.ru", __dir__)
  WORKERS = 3

  def setup
    @servers = []
  end

  def teardown
    @servers.each(&:kill)
  end

  def start(*args, app: APP, **options)
    NodeProcess.new(app, args: args, **options).tap { |server| @servers << server }
  end

  def get(server, path, fields = "")
    RawClient.open(server.url) { |client| client.request("GET #{path} HTTP/1.1\r\nhost: a\r\n#{fields}\r\n") }
  end

  # @return [Array<Integer>] ids of the workers that have booted
  def workers(server, count = WORKERS)
    server.wait_for_log(/(?:Worker \d+ \(PID: \d+\) booted.*){#{count}}/m)
    server.log.scan(/Worker \d+ \(PID: (\d+)\) booted/).flatten.map(&:to_i)
  end

  # Node gives connections to the workers in turns.
  def peers(server, count)
    Array.new(count) { WebsocketPeer.new(server.url, "talk").tap { |peer| assert_match(/\A\d+\z/, peer.hear) } }
  end

  def test_messages_reach_the_clients_of_all_workers
    server = start("-w", WORKERS.to_s)
    connected = peers(server, 6)
    connected.first.say("hello")
    assert_equal ["hello"] * 6, connected.map(&:hear)
    connected.last.say("grün \u{1F408}")
    assert_equal ["grün \u{1F408}".b] * 6, connected.map { |peer| peer.hear.b }
  ensure
    connected&.each(&:close)
  end

  def test_the_history_is_that_of_all_workers
    server = start("-w", WORKERS.to_s)
    ids = Array.new(4) { |number| get(server, "/keep?m#{number}").body }
    # uWebSockets.js leaves it to the kernel who gets a connection.
    assert_operator ids.uniq.size, :>, 1, "only one worker has answered" unless NodeProcess::UWS
    seen = Array.new(4) { RawClient.new(server.url).write("GET /kept HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n").await("data: m3\n\n").buffer }
    seen.each { |stream| assert_equal %w[1 m0 2 m1 3 m2 4 m3], stream.scan(/^(?:id|data): (.*)$/).flatten }
    resumed = RawClient.new(server.url)
    resumed.write("GET /kept HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\nlast-event-id: 2\r\n\r\n").await("data: m3\n\n")
    assert_equal %w[3 m2 4 m3], resumed.buffer.scan(/^(?:id|data): (.*)$/).flatten
  end

  def test_a_replay_that_comes_after_its_subscription_has_ended
    server = start("-w", "1")
    %w[a b].each { |text| get(server, "/keep?#{text}") }
    peer = WebsocketPeer.new(server.url, "brief")
    heard = [peer.hear, peer.hear]
    get(server, "/keep?c")
    assert_equal %w[a b c], [*heard, peer.hear]
  ensure
    peer&.close
  end

  # The newest messages for which there is room in hub_queue_bytes.
  def test_a_replay_is_bounded
    server = start("-w", "2", "--set", "hub_queue_bytes=64k")
    10.times { |number| get(server, "/keep?#{number}#{"x" * 10_000}") }
    stream = RawClient.new(server.url).write("GET /kept HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n").await("\r\n\r\n")
    get(server, "/keep?last")
    stream.await("data: last\n\n")
    assert_equal %w[6 7 8 9 10 11], stream.buffer.scan(/^id: (.*)$/).flatten.last(6)
    assert_operator stream.buffer.bytesize, :<, 80_000
  ensure
    stream&.close
  end

  def test_a_killed_worker_comes_back
    server = start("-w", WORKERS.to_s)
    victim = workers(server).first
    Process.kill("KILL", victim)
    server.wait_for_log(/Worker \d \(PID: #{victim}\) ended by SIGKILL: starting another one/)
    server.wait_for_log(/(?:booted.*){#{WORKERS + 1}}/mo)
    ids = Array.new(NodeProcess::UWS ? 100 : WORKERS * 2) { get(server, "/pid").body.to_i }
    refute_includes ids, victim
    assert_equal WORKERS, ids.uniq.size
  end

  # Node itself may be away for a moment, while another version of it is installed.
  def test_a_worker_that_cannot_be_started_is_tried_again
    Dir.mktmpdir do |folder|
      node = File.join(folder, "node").tap { |path| FileUtils.cp(node_itself, path) }
      server = start("-w", "1", env: { "PATH" => "#{folder}:#{ENV.fetch("PATH")}" })
      lose_node(server, node, workers(server, 1).last)
      File.rename("#{node}.away", node)
      second = workers(server, 2).last
      assert_equal 200, get(server, "/").status
      lose_node(server, node, second)
      assert_predicate server.stop, :success?
    end
  end

  def node_itself
    Open3.capture2("node", "-p", "process.execPath").first.chomp
  end

  # A worker dies while there is no Node.
  def lose_node(server, node, worker)
    File.rename(node, "#{node}.away")
    Process.kill("KILL", worker)
    server.wait_for_log(/PID: #{worker}\) ended by SIGKILL.*^Worker 0 cannot be started: spawn \S+ ENOENT: starting another one$/m)
  end

  def test_a_worker_that_ends_itself_comes_back
    server = start("-w", "1")
    RawClient.open(server.url) { |client| client.write("GET /exit HTTP/1.1\r\nhost: a\r\n\r\n").read_all }
    server.wait_for_log(/ended by exit 3: starting another one/)
    server.wait_for_log(/(?:booted.*){2}/m)
    assert_equal 200, get(server, "/pid").status
  end

  def test_term_lets_a_request_finish
    ["-w 2", "-w 0"].each do |words|
      server = start(*words.split)
      client = RawClient.new(server.url)
      client.write("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await("begin")
      server.signal("TERM")
      server.wait_for_log(/Gracefully stopping/)
      get_refused(server)
      assert_equal "beginend", client.response.body
      assert server.stop(signal: "CONT").success?, words
    end
  end

  def test_a_stop_tells_the_handlers
    server = start("-w", "2")
    connected = peers(server, 2)
    server.signal("TERM")
    connected.each { |peer| assert_equal ["shutdown", [1001, ""]], [peer.hear, peer.hear_close] }
    connected.each(&:close)
    assert server.stop(signal: "CONT").success?
  end

  def test_a_worker_ends_with_its_master
    server = start("-w", WORKERS.to_s)
    ids = workers(server)
    server.signal("KILL")
    assert(wait_until { ids.none? { |id| File.exist?("/proc/#{id}/exe") } })
  end

  # A request that has begun is answered.
  def test_a_worker_whose_master_is_killed
    server = start("-w", "1")
    client = RawClient.new(server.url)
    client.write("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await("begin")
    id = workers(server, 1).first
    server.signal("KILL")
    assert_equal "beginend", client.response.body
    client.close
    assert(wait_until { !File.exist?("/proc/#{id}/exe") })
  end

  def test_a_worker_that_does_not_stop
    server = start("-w", "1", "--set", "drain_timeout_ms=0")
    client = RawClient.new(server.url).write("GET /block HTTP/1.1\r\nhost: a\r\n\r\n")
    server.wait_for_log(/blocking/)
    assert server.stop(signal: "TERM").success?
    assert_match(/Worker 0 \(PID: \d+\) does not stop: it is killed/, server.log)
  ensure
    client&.close
  end

  # The application loads until a file is there.
  def test_a_stop_while_workers_boot
    Dir.mktmpdir do |folder|
      go = File.join(folder, "go")
      log = File.join(folder, "log")
      pid = Process.spawn({ "RONDO_NODE_CACHE" => NodeProcess::CACHE, "GO" => go }, *NodeProcess::COMMAND, "-p", "0", "-w", "2", File.expand_path("boots_long.ru", __dir__), %i[out err] => log)
      assert(wait_until { File.read(log).scan("loading").size == 2 })
      Process.kill("TERM", pid)
      assert(wait_until { File.read(log).include?("Gracefully stopping") })
      File.write(go, "")
      ended = wait_until { Process.wait2(pid, Process::WNOHANG) } or Process.kill("KILL", pid)
      assert ended&.last&.success?, File.read(log)
    end
  end

  def test_a_worker_that_ends_as_it_boots
    server_class = Class.new(NodeProcess) { define_method(:wait_until_listening) { |*_| @urls = [] } }
    server = server_class.new(File.expand_path("ends_at_boot.ru", __dir__), args: ["-w", "1"]).tap { |one| @servers << one }
    server.wait_for_log(/(?:ended by exit 3: starting another one.*){4}/m)
    server.stop
    refute_includes server.log, "TypeError"
  end

  def test_an_address_in_use
    held = TCPServer.new("127.0.0.1", 0)
    %w[0 2].each do |count|
      output, status = run_node("-b", "127.0.0.1", "-p", held.addr[1].to_s, "-w", count, APP)
      assert_equal ["rondo: cannot listen on 127.0.0.1:#{held.addr[1]}: the address is in use"], output.lines(chomp: true).grep(/^rondo/)
      assert_equal 1, status.exitstatus
    end
  ensure
    held&.close
  end

  def test_an_application_that_does_not_load
    app = File.expand_path("raises_at_load.ru", __dir__)
    %w[0 2].each do |count|
      output, status = run_node("-w", count, app)
      assert_includes output, "RuntimeError: no such database"
      assert_includes output, "rondo: the application does not load"
      assert_equal 1, status.exitstatus
    end
  end

  def test_files_for_the_log_and_for_the_process_id
    Dir.mktmpdir do |folder|
      pid_file = File.join(folder, "pid")
      log_file = File.join(folder, "log")
      pid = Process.spawn({ "RONDO_NODE_CACHE" => NodeProcess::CACHE }, *NodeProcess::COMMAND, "-b", "127.0.0.1", "-p", "0", "-P", pid_file, "-l", log_file, APP)
      assert(wait_until { File.exist?(log_file) && File.read(log_file).include?("Listening on http://127.0.0.1:") })
      assert_equal pid, File.read(pid_file).to_i
      Process.kill("TERM", pid)
      assert Process.wait2(pid).last.success?
      refute_path_exists pid_file
      assert_includes File.read(log_file), "- Goodbye!"
    end
  end

  # The one that is written last is that of the server that runs.
  def test_the_file_for_the_process_id_of_another_server
    Dir.mktmpdir do |folder|
      pid_file = File.join(folder, "pid")
      %w[0 2].each do |count|
        server = start("-P", pid_file, "-w", count)
        output, status = run_node("-b", "127.0.0.1", "-p", server.port.to_s, "-P", pid_file, "-w", count, APP)
        assert_equal 1, status.exitstatus, output
        assert_equal "#{server.pid}\n", File.read(pid_file)
        File.write(pid_file, "1\n")
        server.stop
        assert_equal "1\n", File.read(pid_file)
      end
    end
  end

  def test_a_file_for_the_process_id_that_cannot_be_written
    %w[0 2].each do |count|
      output, status = run_node("-b", "127.0.0.1", "-p", "0", "-P", "/none/pid", "-w", count, APP)
      assert_equal ["rondo: ENOENT: no such file or directory, open '/none/pid'"], output.lines(chomp: true).grep(/^rondo/)
      assert_equal 1, status.exitstatus
    end
  end

  private

  def run_node(*args)
    Open3.capture2e({ "RONDO_NODE_CACHE" => NodeProcess::CACHE }, *NodeProcess::COMMAND, *args)
  end

  def get_refused(server)
    assert(wait_until { !connects?(server) })
  end

  def connects?(server)
    TCPSocket.new("127.0.0.1", server.port).close || true
  rescue Errno::ECONNREFUSED
    false
  end

  def wait_until(deadline: 30)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + deadline
    until (found = yield)
      return false if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit

      Thread.pass
    end
    found
  end
end
