# frozen_string_literal: true

# The command of Up! with its options, its handler for rackup, and what applications call.
# SPDX-License-Identifier: MIT

require "integration/shell_case"
require "openssl"
require "rackup"
require "support/certificates"
require "support/websocket_peer"

class UpTest < ShellCase
  GEM = File.join(ROOT, "gems/rondo-up")
  RUBY = [RbConfig.ruby, "--disable-gems", "-I#{File.join(ROOT, "lib")}", "-I#{File.join(GEM, "lib")}"].freeze
  APP = <<~RUBY
    class Chat
      def on_open(client)
        client.subscribe("chat")
        client.write([client.class, client.open?, client.pubsub? && true, client.protocol].inspect)
      end

      def on_message(client, data)
        client.publish("chat", data)
      end
    end

    run lambda { |env|
      env["rack.upgrade"] = Chat.new if env["rack.upgrade?"] == :websocket
      Up.publish("chat", env["QUERY_STRING"]) unless env["QUERY_STRING"].empty?
      [200, {}, [env["rack.url_scheme"]]]
    }
  RUBY

  # The command with the options that a test gives.
  class Command < ServerProcess
    def self.running
      superclass.running
    end

    private

    def command_line(app, _settings, _config, _binds, args)
      [*RUBY, *(args.first.start_with?("-") ? [File.join(GEM, "exe/up_ruby")] : []), *args, *app]
    end
  end

  def setup
    super
    write "config.ru", APP
  end

  def path(name)
    File.join(@folder, name)
  end

  def start(*args, app: nil)
    Command.new(app, args: args, spawn: { chdir: @folder }).tap { |server| @servers << server }
  end

  # @return [Array(String, String, Integer)] output, errors and exit code
  def up(name, *args)
    run_command(*RUBY, File.join(GEM, "exe", name), *args).to_a
  end

  def test_a_chat
    server = start("-b", "127.0.0.1", "-p", "0", "--workers", "2", "-P", path("up.pid"))
    server.wait_for_log(/(?:booted.*){2}/m)
    assert_equal server.pid, File.read(path("up.pid")).to_i
    peers = Array.new(2) { WebsocketPeer.new(server.url) }
    peers.each { |peer| assert_equal "[Rondo::Client, true, true, :websocket]", peer.hear }
    # The workers have to tell the hub of their subscriptions first.
    peers.first.say("hello") until peers.all? { |peer| peer.wait_readable(0.1) }
    peers.first.say("over")
    peers.each { |peer| nil until peer.hear == "over" }
    assert_equal "http", Net::HTTP.get(URI("#{server.url}/?news"))
    assert_equal %w[news news], peers.map(&:hear)
    peers.each(&:close)
    assert server.stop(signal: "TERM").success?
    assert_match(/Max threads: 1 /, server.log)
  ensure
    peers&.each(&:close)
  end

  # The lines are in the file; the test learns there where the server listens.
  def test_secure_with_a_log
    certificates = Certificates.new(@folder)
    pair = certificates.pair("server")
    held = HeldPort.new
    port = held.number
    pid = Process.spawn(*RUBY, File.join(GEM, "exe/up_ruby"), "-p", port.to_s, "-w", "1", "-s", "-a", certificates.authority,
                        "-c", pair.certificate, "-k", pair.key, "-l", path("up.log"), "config", chdir: @folder, err: File::NULL)
    IO.select(nil, nil, nil, 0.01) until File.exist?(path("up.log")) && File.read(path("up.log")).include?("booted")
    http = Net::HTTP.new("localhost", port)
    http.use_ssl = true
    http.ca_file = certificates.authority
    assert_equal "https", http.get("/").body
  ensure
    Process.kill("INT", pid) && Process.wait(pid) if pid
    held&.close
  end

  def test_words_that_end_at_once
    assert_equal ["Up! v0.0.13\n", "", 0], up("up_ruby", "-v")
    out, _err, code = up("up_ruby", "--help")
    assert_equal 0, code
    %w[-p -b -s -a -c -k -l -P -v -w].each { |option| assert_match(/^ +#{option}, --/, out) }
    assert_equal ["", "up_ruby: invalid option: -x (-h will show valid options)\n", 64], up("up_ruby", "-x")
    assert_equal ["", "When using -s or --secure the -a,-c- and -k options must be given too!\n", 2], up("up_ruby", "-s", "-c", "x")
    _out, err, code = up("up_ruby", "none")
    assert_equal [1, true], [code, err.match?(/^up_ruby: no application: none does not exist/)], err
  end

  def test_rackup
    server = start(Gem.bin_path("rackup", "rackup"), "-s", "up", "-o", "127.0.0.1", "-p", "0")
    assert_equal "http", Net::HTTP.get(URI("#{server.url}/"))
  end
end
