# frozen_string_literal: true

# Connections that an application made, and that are over, leave nothing behind: no memory, no descriptors, no
# objects. The test makes some thousands of each kind, or as many as RONDO_TEST_CONNECTS says.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "support/held_port"
require "tmpdir"

class OutgoingLeaksTest < Minitest::Test
  CONNECTS = Integer(ENV.fetch("RONDO_TEST_CONNECTS", "2000"))
  LIB = File.expand_path("../../lib", __dir__)
  # ASan keeps freed memory for a while.
  MEMORY_KIB = ENV.fetch("LD_PRELOAD", "").include?("asan") ? 256 * 1024 : 4096
  FEW = 20 # the conservative collector finds some on a stack

  # Connects to itself: one half of the connections, what is alive then, the other half, and the same again.
  PROGRAM = <<~'RUBY'
    require "rondo"
    class Echo
      def on_message(client, data) = client.write(data)
    end
    class Caller
      def on_open(client) = client.write("hello")
      def on_message(client, _data) = client.close
      def on_close(client) = ENDS << client.nil?
    end
    ENDS = Queue.new
    WAVE = 100

    def alive
      GC.start
      { rss: File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i, fds: Dir.children("/proc/self/fd").size,
        callers: ObjectSpace.each_object(Caller).count, clients: ObjectSpace.each_object(Rondo::Client).count }
    end

    # Many addresses, so that there are ports enough.
    def connect(count, urls)
      (count / WAVE).times do
        WAVE.times { |number| Rondo.connect(urls[number % urls.size], handler: Caller.new) }
        WAVE.times { abort "a connection failed" if ENDS.pop }
      end
      alive
    end

    def serve(scheme, where)
      app = ->(env) { (env["rack.upgrade"] = Echo.new) && [0, {}, []] }
      server = Rondo::Server.new(app, min_threads: 1, max_threads: 2, max_connections: 1000)
      scheme == "ws" ? server.listen("tcp://0.0.0.0:#{where}") : server.listen_raw("unix://#{where}") { Echo.new }
      thread = Thread.new { server.run }
      yield
      server.stop
      thread.join
    end

    scheme, where, half = ARGV[0], ARGV[1], Integer(ARGV[2]) / 2
    urls = scheme == "ws" ? (2..60).map { |number| "ws://127.0.0.#{number}:#{where}/" } : ["unix://#{where}"]
    serve(scheme, where) do
      connect(WAVE, urls)
      puts [connect(half, urls), connect(half, urls)].map { |found| found.values.join(" ") }
    end
  RUBY

  def halves(scheme)
    Dir.mktmpdir("leaks") do |folder|
      port = HeldPort.new
      where = scheme == "ws" ? port.number.to_s : File.join(folder, "socket")
      out, status = Open3.capture2e(Gem.ruby, "-I", LIB, "-e", PROGRAM, scheme, where, CONNECTS.to_s)
      assert_predicate status, :success?, out
      return out.lines.map { |line| line.split.map { |number| Integer(number) } }
    ensure
      port&.close
    end
  end

  def check(scheme)
    (rss, fds), (rss_later, fds_later, callers, clients) = halves(scheme)
    assert_operator rss_later - rss, :<=, MEMORY_KIB
    assert_equal fds, fds_later
    assert_operator callers, :<=, FEW
    assert_operator clients, :<=, FEW
  end

  def test_raw_connections
    check("unix")
  end

  def test_websockets
    check("ws")
  end
end
