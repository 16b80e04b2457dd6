# frozen_string_literal: true

# Servers that programs begin by `Iodine.listen` and `Iodine.start`, and mistakes on the way: what Rondo does. Where iodine
# does the same, the scenarios compare both.
# SPDX-License-Identifier: MIT

require "test_helper"
require_relative "contender"
require "net/http"
require "open3"
require "openssl"
require "support/certificates"
require "support/websocket_peer"

class IodineRunningTest < Minitest::Test
  ROOT = Contender::ROOT
  LIBRARIES = %w[lib gems/rondo-iodine/lib].map { |folder| "-I#{File.join(ROOT, folder)}" }.freeze

  def setup
    @programs = []
    @folder = Dir.mktmpdir("rondo-iodine")
  end

  def teardown
    @programs.each(&:close)
    FileUtils.rm_rf(@folder)
  end

  def start(text, **options)
    Contender.new(:rondo, options[:command] ? "program.ru" : "program.rb", text: text, requires: ["iodine"], **options).tap { |program| @programs << program }
  end

  # @return [Array(String, String, Integer)] output, errors, exit code of a program that ends by itself
  def run_program(text)
    out, err, status = Open3.capture3(Contender::BLANK, RbConfig.ruby, "--disable-gems", *LIBRARIES, "-riodine", "-e", text, chdir: @folder)
    [out, err, status.exitstatus]
  end

  def get(url)
    Net::HTTP.get(URI(url))
  end

  def over_socket(path, target)
    UNIXSocket.open(path) do |socket|
      socket.write("GET #{target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      socket.read.lines.last
    end
  end

  def test_several_applications_and_where_they_log
    program = start(<<~RUBY)
      Iodine.threads = Iodine.workers = 1
      Iodine.listen(service: :http, port: "3000", log: true, public: ".") { [200, {}, ["one"]] }
      Dir.mkdir("own")
      { "index.html" => "index", "file" => "words", ".env" => "secret" }.each { |name, text| File.write("own/\#{name}", text) }
      Iodine.listen(url: "http://:0\#{Dir.pwd}/two.sock", max_clients: 5, nonsense: 1, public: "own") do |env|
        [200, env["PATH_INFO"] == "/sent" ? { "x-sendfile" => File.expand_path("own/file") } : {}, ["two"]]
      end
      Iodine.start
    RUBY
    assert_equal "one", get("#{program.url}/")
    assert_includes get("#{program.url}/program.rb"), "nonsense"
    program.wait_for_errors(%r{"GET / HTTP/1.1" 200})
    { "/" => "index", "/file" => "words", "/sent" => "words", "/.env" => "two", "/%2eenv" => "two", "/%2f.env" => "two", "/own%2F%2Eenv" => "two",
      "/../program.rb" => "two", "/own/" => "two" }
      .each { |path, text| assert_equal text, over_socket(File.join(program.folder, "two.sock"), path), path }
    refute_includes get("#{program.url}/file"), "words"
    assert_includes program.errors, "WARNING: Iodine.listen: unknown key :nonsense, ignored.\n"
    program.signal("INT")
    assert_equal 0, program.finish
    assert_empty program.output
  end

  def test_quiet
    program = start("Iodine.verbosity = 1\nIodine.threads = Iodine.workers = 1\n" \
                    "Iodine.listen(service: :http, port: '3000', hm: 1) { [200, {}, ['one']] }\nIodine.start")
    assert_equal "one", get("#{program.url}/")
    program.signal("TERM")
    assert_equal 0, program.finish
    assert_empty program.errors
  end

  def test_tls
    pair = Certificates.new(@folder).pair("server")
    program = start(<<~RUBY)
      Iodine.threads = Iodine.workers = 1
      abort "shown" if Iodine::TLS.new("localhost", "certificate", "key", "password").inspect.include?("password")
      tls = Iodine::TLS.new("localhost", #{pair.certificate.inspect}, #{pair.key.inspect})
      Iodine.listen(service: :https, port: "3000", tls: tls) { |env| [200, {}, [env["rack.url_scheme"]]] }
      Iodine.start
    RUBY
    http = Net::HTTP.new("localhost", program.port)
    http.use_ssl = true
    http.ca_file = File.join(@folder, "authority.pem")
    assert_equal "https", http.get("/").body
  end

  # The root has nothing to listen at, and runs timers all the same.
  def test_without_a_listener
    out, err, code = run_program("Iodine.threads = Iodine.workers = 1\n" \
                                 "Iodine.run_every(5, 3) { puts 'tick' }\nIodine.run_after(2000) { Iodine.stop }\nIodine.start\nputs 'end'")
    assert_equal ["tick\n" * 3 + "end\n", 0], [out, code], err
    refute_includes err, "Listening on"
  end

  # @param asked [String] what else a message shows of its client
  # @param nobody [String] settings of a connection that cannot be made: the last one
  def client_that_tells(asked, nobody)
    <<~RUBY
      Iodine.threads = Iodine.workers = 1
      class Client
        def on_open(client) = client.write("hello")

        def on_message(client, data)
          p [data, data.encoding, client.protocol, client.#{asked}]
          client.close
        end

        def on_close(client)
          p client.class
          client ? Iodine.connect(#{nobody}, handler: self) : Iodine.stop
        end
      end
    RUBY
  end

  def test_connections_of_its_own
    peer = TCPServer.new("127.0.0.1", 0)
    program = start(<<~RUBY, waits: false)
      #{client_that_tells("env", 'port: 1, address: "127.0.0.1"')}
      p Iodine.connect(address: "127.0.0.1", port: #{peer.addr[1]}, handler: Client.new)
      Iodine.start
    RUBY
    socket = peer.accept
    assert_equal "hello", socket.readpartial(100)
    socket.write("answer")
    assert_nil socket.read(1)
    socket.close
    assert_equal 0, program.finish
    assert_equal ["Iodine", %(["answer", #{Encoding::BINARY.inspect}, :raw, nil]), "Iodine::Connection", "NilClass"],
                 program.output.lines(chomp: true)
  ensure
    [socket, peer].compact.each(&:close)
  end

  def test_connections_of_its_own_with_tls
    certificates = Certificates.new(@folder)
    listener = TCPServer.new("127.0.0.1", 0)
    program = start(<<~RUBY, waits: false)
      Iodine.threads = Iodine.workers = 1
      module Client
        def self.on_open(client) = client.write("hello")

        def self.on_close(_client) = Iodine.stop
      end
      tls = Iodine::TLS.new
      tls.trust(#{certificates.authority.inspect})
      tls.on_protocol("own/1") { Client }
      Iodine.connect(address: "localhost", port: #{listener.addr[1]}, handler: Client, tls: tls)
      Iodine.start
    RUBY
    with_tls_peer(listener, certificates, alpn: ->(offered) { offered.first }) do |peer|
      assert_equal ["hello", "own/1"], [peer.readpartial(10), peer.alpn_protocol]
    end
    assert_equal 0, program.finish
  ensure
    listener&.close
  end

  # @yieldparam socket [OpenSSL::SSL::SSLSocket] of the first client
  def with_tls_peer(listener, certificates, alpn: nil)
    pair = certificates.pair("server")
    context = OpenSSL::SSL::SSLContext.new
    context.add_certificate(OpenSSL::X509::Certificate.new(File.read(pair.certificate)), OpenSSL::PKey.read(File.read(pair.key)))
    context.alpn_select_cb = alpn if alpn
    socket = OpenSSL::SSL::SSLServer.new(listener, context).accept
    yield socket
  ensure
    socket&.close
  end

  def test_websockets_of_its_own
    certificates = Certificates.new(@folder)
    listener = TCPServer.new("127.0.0.1", 0)
    program = start(<<~RUBY, waits: false)
      #{client_that_tells("timeout", 'url: "ws://127.0.0.1:1"')}
      tls = Iodine::TLS.new
      tls.trust(#{certificates.authority.inspect})
      p Iodine.connect(url: "wss://localhost:#{listener.addr[1]}/feed?all=1#here", handler: Client.new, tls: tls, ping: 5,
                       headers: { "X-Own": "one", "sec-websocket-protocol" => "a, b", 5 => "none", "Host" => "other" },
                       cookies: { name: "Ann", "size" => :large, bad: 1 })
      Iodine.start
    RUBY
    with_tls_peer(listener, certificates) do |peer|
      head = +""
      head << peer.readpartial(1000) until head.include?("\r\n\r\n")
      assert_equal "GET /feed?all=1 HTTP/1.1", head.lines(chomp: true).first
      ["host: localhost:#{listener.addr[1]}", "x-own: one", "sec-websocket-protocol: a, b", "cookie: name=ann; size=large"]
        .each { |line| assert_includes head.downcase.lines(chomp: true), line }
      accept = WebsocketFrames.accept_key(head[/^Sec-WebSocket-Key: (\S+)/i, 1])
      peer.write("HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: #{accept}\r\n\r\n")
      assert_equal "\x81\x85".b, peer.readpartial(2)
      peer.write("\x81\x06answer")
      program.wait_for_output(/^\["answer"/)
    end
    assert_equal 0, program.finish
    assert_equal ["Iodine", '["answer", #<Encoding:UTF-8>, :websocket, 5]', "Iodine::Connection", "NilClass"], program.output.lines(chomp: true)
    assert_equal ["WARNING: invalid key type in header hash, ignored.", "WARNING: the header Host belongs to the handshake, ignored.",
                  "WARNING: invalid cookie value type, ignored."], program.errors.scan(/^WARNING.*ignored\.$/)
  ensure
    listener&.close
  end

  def test_sockets_of_its_own
    out, err, code = run_program(<<~RUBY)
      Iodine.threads = Iodine.workers = 1
      echo = Class.new { def on_message(client, data) = client.write(data.upcase) }
      before, one = UNIXSocket.pair
      later, two = UNIXSocket.pair
      p Iodine.attach_fd(before.fileno, handler = echo.new).equal?(handler)
      Iodine.run do
        Iodine.attach_fd(later.fileno, echo.new)
        [before, later].each(&:close)
        Thread.new do
          p [one, two].map { |socket| socket.write("hello") && socket.readpartial(10) }
          [one, two].each(&:close)
          Iodine.stop
        end
      end
      Iodine.start
    RUBY
    assert_equal ["true\n[\"HELLO\", \"HELLO\"]\n", 0], [out, code], err
  end

  def test_mistakes
    taken = TCPServer.new("127.0.0.1", 0)
    { "Iodine.listen(port: #{taken.addr[1]}, address: '127.0.0.1') { nil }" => "Couldn't open listening socket. (RuntimeError)",
      "Iodine.listen(service: :http, port: 1234)" => "a :handler is required. (ArgumentError)",
      "Iodine.listen(5)" => "wrong argument type Integer (expected Hash) (TypeError)",
      "Iodine.connect(service: :ws, address: '/tmp/x', handler: 1)" => "Couldn't open client socket. (RuntimeError)",
      "Iodine.connect(url: 'ws://local host', handler: 1)" => "expected tcp://HOST:PORT",
      "Iodine.connect(url: 'http://localhost:1', handler: 1)" => "HTTP client connections aren't supported yet. (RuntimeError)",
      "Iodine.listen(port: 1234, tls: Iodine::TLS.new('a', '/none', '/none', 'b')) { }; Iodine.start" => "/none: No such file or directory",
      "Iodine.attach_fd(999, 5)" => "invalid fd. (IOError)",
      "Iodine.attach_fd(TCPServer.new('127.0.0.1', 0).fileno, 5)" => "invalid fd. (IOError)",
      "Iodine.attach_fd(UDPSocket.new.tap { |s| s.connect('127.0.0.1', 9) }.fileno, 5)" => "invalid fd. (IOError)",
      "Iodine.attach_fd(IO.pipe.last.fileno, 5)" => "invalid fd. (IOError)" }.each do |line, error|
      _out, err, code = run_program(line)
      assert_equal [1, true], [code, err.include?(error)], [line, err]
    end
  ensure
    taken&.close
  end

  # Before it understands signals: also by a thread, and with workers.
  def test_a_stop_at_once
    %w[1 2].each do |workers|
      out, err, code = run_program("Iodine.threads = 1\nIodine.workers = #{workers}\nIodine.on_state(:pre_start) { Iodine.stop }\n" \
                                   "Iodine.on_state(:on_finish) { puts 'finish' unless Iodine.worker? && #{workers} > 1 }\nIodine.start\nputs 'end'")
      assert_equal ["finish\nend\n", 0], [out, code], err
    end
  end

  def test_a_second_start
    out, err, code = run_program("Iodine.threads = Iodine.workers = 1\n" \
                                 "Iodine.run { (Iodine.start rescue p $!); Iodine.stop }\nIodine.start\n" \
                                 "Iodine.run { puts 'again'; Iodine.stop }\nIodine.start")
    assert_equal ["#<RuntimeError: Iodine already running!>\nagain\n", 0], [out, code], err
  end

  # As an application for iodine 0.2 has it.
  def test_the_upgrade_of_before
    program = start(<<~RUBY, command: true, requires: [], args: %w[-t 1 -w 1])
      class Chat
        def on_open
          write("welcome, \#{count}")
        end

        def write(data)
          super("> \#{data}")
        end

        def on_message(data)
          return close if data == "bye"

          each { |other| other.write("other: \#{data}") }
          write("own: \#{data}")
        end

        def on_close
          each { |other| other.write("one left, \#{count}") }
        end
      end

      run lambda { |env|
        env["upgrade.websocket"] = Chat if env["upgrade.websocket?"]
        [env["upgrade.websocket"] ? 0 : 200, {}, []]
      }
    RUBY
    ann, bob = Array.new(2) { WebsocketPeer.new(program.url) }
    assert_equal ["> welcome, 1", "> welcome, 2"], [ann, bob].map(&:hear)
    ann.say("hello")
    assert_equal ["> own: hello", "> other: hello"], [ann, bob].map(&:hear)
    ann.say("bye")
    assert_equal 1000, ann.hear_close.first
    ann.close
    assert_equal "> one left, 1", bob.hear
    bob.close
  end

  def test_a_worker_that_crashes
    program = start(<<~RUBY)
      Iodine.workers = 1 + Iodine.threads = 1
      Iodine.on_state(:on_child_crush) { puts "root \#{Process.pid}: a worker has crashed" }
      Iodine.listen(service: :http, port: "3000") { |env| [200, {}, [Process.pid.to_s]] }
      Iodine.start
    RUBY
    Process.kill("KILL", get("#{program.url}/").to_i)
    assert_equal program.pid.to_s, program.wait_for_output(/^root (\d+): a worker has crashed$/)[1]
  end

  def test_a_root_that_crashes
    program = start(<<~RUBY)
      Iodine.workers = 1 + Iodine.threads = 1
      $lines = File.open("lines.txt", "a")
      %i[start_shutdown on_parent_crush].each { |name| Iodine.on_state(name) { $lines.syswrite("\#{Process.pid} \#{name}\n") } }
      Iodine.listen(service: :http, port: "3000") { |env| [200, {}, [Process.pid.to_s]] }
      Iodine.start
    RUBY
    worker = get("#{program.url}/")
    path = File.join(program.folder, "lines.txt")
    program.signal("KILL")
    assert_equal 137, program.finish
    Timeout.timeout(Contender::DEADLINE) { IO.select(nil, nil, nil, 0.01) until File.read(path).scan("start_shutdown").size == 2 }
    assert_equal ["#{worker} on_parent_crush", "#{worker} start_shutdown"], File.readlines(path, chomp: true).grep(/^#{worker} /)
  end

  def test_rackup
    program = start("require 'rondo-iodine'\nIodine.threads = Iodine.workers = 1\n" \
                    "run ->(_env) { [200, {}, [[Iodine.running?, Iodine.worker?, ENV['RACK_HANDLER']].inspect]] }\n",
                    command: Gem.bin_path("rackup", "rackup"), requires: [], args: %w[-s iodine -o 127.0.0.1 -p 3000 -E none])
    assert_equal '[true, true, "iodine"]', get("#{program.url}/")
    program.signal("INT")
    assert_equal 0, program.finish
  end

  # Initializers set the concurrency while the application is loaded; a restart brings new code.
  def test_the_command_with_workers
    text = "Iodine.workers = 2 if Iodine.workers.zero?\nIodine.threads = 3\nIodine::DEFAULT_SETTINGS[:port] = '3000'\n" \
           "CODE = 'one'\nrun ->(_env) { [200, {}, [[CODE, Iodine.master?, Iodine.worker?].inspect]] }\n"
    program = start(text, command: true, requires: [], args: %w[-max-body 1 -k 5 -pid ./])
    program.wait_for_errors(/(?:- Worker \d .*){2}/m)
    assert_equal '["one", false, true]', get("#{program.url}/")
    ["Max threads: 3", "max_body_bytes 1048576 ", "keep_alive_timeout_ms 5000 "].each { |line| assert_includes program.errors, line }
    assert_equal program.pid, File.read(File.join(program.folder, "iodine.pid")).to_i
    path = File.join(program.folder, "program.ru")
    File.write(path, File.read(path).sub("'one'", "'two'"))
    program.signal("USR1")
    program.wait_for_errors(/(?:phase: 1.*){2}/m)
    old = program.errors.scan(/\(PID: (\d+)\) booted in .*phase: 0$/).flatten
    assert_equal 2, old.size
    Timeout.timeout(Contender::DEADLINE) { IO.select(nil, nil, nil, 0.01) while old.any? { |pid| File.exist?("/proc/#{pid}") } }
    assert_equal '["two", false, true]', get("#{program.url}/")
    program.signal("INT")
    assert_equal 0, program.finish
  end
end
