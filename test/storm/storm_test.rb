# frozen_string_literal: true

# A storm over the whole stack: every kind of answer and of end, by clients that cut, stop and leave at
# random. Afterwards the server still serves, has given back what it held, and stops in order. It proves
# most with the extension under AddressSanitizer (tools/run_asan storm) and ThreadSanitizer.
#
# RONDO_STORM_SECONDS says how long each storm lasts, RONDO_STORM_SEED repeats one.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/server_process"
require "storm/storm_clients"

class StormTest < Minitest::Test
  SECONDS = ENV.fetch("RONDO_STORM_SECONDS", "4").to_f
  SEED = ENV.fetch("RONDO_STORM_SEED") { Random.new_seed % 1_000_000 }.to_i
  APP = File.expand_path("storm.ru", __dir__)
  SLACK = 4 # the static folder keeps files open; what the collector takes for a pointer keeps a stream
  WORKERS = 2
  PATIENCE = 60
  # Each deadline is short, so that its end is reached within the storm.
  SETTINGS = { head_timeout_ms: 1000, body_timeout_ms: 1000, keep_alive_timeout_ms: 1000, write_timeout_ms: 1000,
               request_timeout_ms: 1000, ping_interval_ms: 500, close_timeout_ms: 500, drain_timeout_ms: 5000,
               max_parked_bodies: 8, max_pending_bytes: 200_000 }.freeze

  def setup
    @folder = Dir.mktmpdir("storm")
    File.write(File.join(@folder, "static.txt"), "s" * 50_000)
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def storm_on(*args)
    file = File.join(@folder, "static.txt")
    ServerProcess.run(APP, args: ["-www", @folder, *args], settings: SETTINGS,
                           config: "sendfile_type \"X-Sendfile\"\nx_sendfile_root #{@folder.inspect}\n",
                           env: { "RONDO_STORM_FILE" => file }) do |server|
      WORKERS.times { |number| server.wait_for_log(/^- Worker #{number} .* booted/) } if args.include?("-w")
      assert serves?(server)
      before = processes(server).sum { |pid| descriptors(pid) }
      pids = processes(server).sort
      counts = StormClients.new(server.port, SEED).run(SECONDS)
      settle(server, before, pids, "seed #{SEED}, #{counts}")
      assert_predicate server.stop(deadline: PATIENCE), :success?, last_words(server)
      refute_match(/\[BUG\]|Assertion|ended by SIG|Sanitizer/, server.log)
    end
  end

  # What of the storm is still inside may keep it from that for a moment.
  def serves?(server)
    TCPSocket.open("127.0.0.1", server.port) do |socket|
      socket.write("GET /hello HTTP/1.0\r\n\r\n")
      socket.wait_readable(PATIENCE) && socket.read.end_with?("hello")
    end
  rescue SystemCallError
    false
  end

  # Those that serve, and the master.
  def processes(server)
    Dir.glob("/proc/[0-9]*/stat").filter_map do |path|
      fields = File.read(path).rpartition(") ").last.split
      path[/\d+/].to_i if fields[2].to_i == server.pid && fields[0] != "Z"
    rescue SystemCallError
      nil # it ended meanwhile
    end
  end

  def descriptors(pid)
    Dir.children("/proc/#{pid}/fd").size
  rescue SystemCallError
    0
  end

  # What says why: the beginning of a report of Ruby's or of a sanitizer, where the stacks are, and the end.
  def last_words(server)
    log = server.log
    report = log.index(/\[BUG\]|^=+\n==\d+==|Assertion/)
    [report && log[report, 12_000], log.length > 4000 ? log[-4000..] : log].compact.join("\n[...]\n")
  end

  # It serves, every connection, file and stream has been given back, and every process is the one it was.
  def settle(server, before, pids, said)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    loop do
      is_served = serves?(server)
      now = processes(server).sort
      held = now.sum { |pid| descriptors(pid) }
      return if is_served && now == pids && held <= before + SLACK

      if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
        flunk "served: #{is_served}, #{held} descriptors instead of #{before}, processes #{now} instead of #{pids} (#{said}):\n#{last_words(server)}"
      end
      sleep 0.05
    end
  end

  def test_one_thread
    storm_on("-t", "1")
  end

  def test_threads
    storm_on("-t", "1:4")
  end

  def test_workers
    storm_on("-w", WORKERS.to_s, "-t", "1:2")
  end
end
