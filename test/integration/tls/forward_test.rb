# frozen_string_literal: true

# A request of a connection that cannot move, because it is encrypted, does not wait for a stuck worker: another worker
# answers it, through the stuck one.
# SPDX-License-Identifier: MIT

require_relative "tls_case"

class TLSForwardTest < TLSCase
  FORWARD = <<~RUBY
    require "fiddle"
    READ = Fiddle::Function.new(Fiddle.dlopen(nil)["read"], [-Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, -Fiddle::TYPE_LONG],
                                Fiddle::TYPE_LONG, need_gvl: true)
    run lambda { |env|
      case env["PATH_INFO"]
      when %r{\\A/(loop|c)\\z}
        warn "inside \#{Process.pid}"
        env["PATH_INFO"] == "/loop" ? (nil until File.exist?("go")) : File.open("gate", "r+") { |gate| READ.call(gate.fileno, Fiddle.malloc(1), 1) }
      end
      [200, { "worker" => Process.pid.to_s }, [Process.pid.to_s]]
    }
  RUBY

  def setup
    super
    write "config.ru", FORWARD
    File.mkfifo(File.join(@folder, "gate"))
    @gate = File.open(File.join(@folder, "gate"), "r+")
  end

  def teardown
    open_gate
    @sockets&.each(&:close)
    super
    @gate.close
  end

  # The calls that are inside continue.
  def open_gate
    write "go", ""
    @gate.write("x")
    @gate.flush
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
end
