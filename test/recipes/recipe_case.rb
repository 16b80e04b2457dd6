# frozen_string_literal: true

# A copy of the application of examples/recipes in a folder, and what platforms and proxies do with it: commands are
# taken from the recipes, addresses and paths in them are replaced by those of the test.
# SPDX-License-Identifier: MIT

require "integration/shell_case"
require "json"
require "support/child_server"
require "support/event_stream"
require "support/websocket_peer"
require "yaml"

class RecipeCase < ShellCase
  RECIPES = File.join(ROOT, "examples/recipes")
  # Clients have another address than the proxy, which the server trusts.
  CLIENT = "127.0.0.2"
  FORGED = { "X-Forwarded-For" => "203.0.113.6", "X-Forwarded-Proto" => "https", "X-Forwarded-Port" => "1",
             "X-Forwarded-Host" => "evil.example", "Forwarded" => "for=203.0.113.6;host=evil.example;proto=https" }.freeze

  # HAProxy gives a check as long as the interval between two, if nothing is said: one second.
  PATIENT_CHECKS = { "option redispatch" => "option redispatch\n    timeout check 30s" }.freeze

  # A program in front of the server. The block gets it, writes its files, and returns the command.
  class Proxy < ChildServer
    attr_reader :command

    def initialize
      super { @command = yield self }
    end

    def write(name, text)
      File.join(folder, name).tap { |path| File.write(path, text) }
    end

    def url
      "http://127.0.0.1:#{port}"
    end

    # Gracefully.
    def stop
      signal("TERM")
      @waiter.join
      close
    end
  end

  def setup
    super
    FileUtils.cp_r(File.join(RECIPES, "app/."), @folder)
    @held = []
    @proxies = []
  end

  def teardown
    @proxies.each(&:close)
    super
    @held.each(&:close)
  end

  def recipe(name)
    File.read(File.join(RECIPES, name))
  end

  # @param changes [Hash{String => String}] what stands in the recipe, and what stands in its place
  def filled(name, changes)
    changes.reduce(recipe(name)) do |text, (from, to)|
      assert_includes text, from, name
      text.gsub(from, to)
    end
  end

  def free_port
    @held << HeldPort.new
    @held.last.number
  end

  # Runs the command as a shell does, in the folder of the application.
  # @return [Server]
  def serve(command, env = {}, folder: @folder, listeners: 1)
    path = [File.join(ROOT, "exe"), ENV.fetch("PATH")].join(File::PATH_SEPARATOR)
    server = Command.new(nil, args: ["sh", "-c", "exec #{command}"], binds: [nil.to_s] * listeners,
                              env: BLANK.merge("PATH" => path, **env), spawn: { chdir: folder })
    @servers << server
    server
  end

  def proxy(name, &block)
    skip "#{name} is not installed" unless program(name)
    Proxy.new(&block).tap { |started| @proxies << started }
  end

  def program(name)
    folders = ENV.fetch("PATH").split(":").push("/usr/sbin")
    folders.map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) }
  end

  # @return [Array<String>] nginx with a configuration that includes these lines in its http
  def nginx(proxy, lines)
    config = proxy.write("nginx.conf", <<~CONFIG)
      daemon off; pid #{proxy.folder}/pid; error_log #{proxy.folder}/error.log;
      #{"user root;" if Process.uid.zero?}
      worker_processes 1;
      events { worker_connections 256; }
      http {
        access_log off; client_body_temp_path #{proxy.folder}/body; proxy_temp_path #{proxy.folder}/proxy;
        fastcgi_temp_path #{proxy.folder}/f; uwsgi_temp_path #{proxy.folder}/u; scgi_temp_path #{proxy.folder}/s;
        include #{proxy.write("site.conf", lines)};
      }
    CONFIG
    [program("nginx"), "-p", proxy.folder, "-c", config]
  end

  def fetch(url, path = "/", headers = {}, from: CLIENT)
    uri = URI(url)
    http = Net::HTTP.new(uri.host, uri.port)
    http.local_host = from
    http.read_timeout = PATIENCE
    http.get(path, headers)
  end

  def assert_up(port, path = "/up")
    response = fetch("http://127.0.0.1:#{port}", path)
    assert_equal %W[200 up\n], [response.code, response.body]
  end

  # The server ends by itself before the platform kills it.
  def assert_in_time(seconds)
    own = recipe("app/config/rondo.rb").scan(/^(?:drain_timeout|worker_shutdown_timeout) (\d+)/).flatten.map(&:to_i)
    assert_equal 2, own.size
    assert_operator own.max, :<, seconds
  end

  # What a client wrote into forwarded fields is not believed, and its address arrives.
  def assert_client_known(url)
    said = fetch(url, "/client", FORGED.merge("Host" => "app.example.com"))
    assert_equal "http app.example.com #{CLIENT}\n", said.body
  end

  # Other workers, and other servers, learn of a stream a moment after its client has the head.
  def wait_for_others(client, publisher)
    eventually("an event") do
      Net::HTTP.post(URI("#{publisher}/news"), "begun")
      client.read_some(timeout: 0.5)
    rescue RawClient::Timeout
      nil
    end
  end

  # Each event arrives while the stream is open.
  def assert_stream(url, publisher = url)
    client = RawClient.new(url)
    client.write("GET /news HTTP/1.1\r\nHost: app.example.com\r\nAccept: text/event-stream\r\n\r\n")
    read = +""
    read << client.read_some until read.include?("\r\n\r\n")
    wait_for_others(client, publisher)
    %w[first second].each do |word|
      assert_equal "204", Net::HTTP.post(URI("#{publisher}/news"), word).code
      read << client.read_some until read.match?(/^data: ?#{word}\r?\n/)
    end
  ensure
    client&.close
  end

  def assert_websocket(url)
    peer = WebsocketPeer.new(url, "echo")
    assert_equal "hello", peer.ask("hello")
  ensure
    peer&.close
  end
end
