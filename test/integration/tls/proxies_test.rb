# frozen_string_literal: true

# nginx and haproxy in front of a port for TLS: requests on connections that are kept, events, WebSockets; haproxy also
# with a PROXY header before each handshake.
# SPDX-License-Identifier: MIT

require_relative "../rack/rack_case"
require "net/http"
require "support/certificates"
require "support/event_stream"
require "support/proxy_process"
require "support/websocket_peer"

class TLSProxiesTest < RackCase
  PROXIES = {
    "nginx" => ["nginx", { scheme: "https" }],
    "haproxy" => ["haproxy", { server: "ssl verify none" }],
    "haproxy_with_its_header" => ["haproxy", { server: "ssl verify none send-proxy-v2" }]
  }.freeze
  ECHO = Module.new { def self.on_message(client, data) = client.write(data) }
  LARGE = "0123456789" * 100_000

  # Sends one event, and hands out its client for more.
  class Events
    attr_reader :client

    def initialize
      @client = Queue.new
    end

    def on_open(client)
      client.event("first", id: 1)
      @client << client
    end
  end

  def setup
    super
    @folder = Dir.mktmpdir("rondo-proxies")
    @events = Events.new
    @pair = Certificates.new(@folder).pair("server")
  end

  def teardown
    @proxy&.stop
    super
    FileUtils.rm_rf(@folder)
  end

  def answer(env)
    case env["rack.upgrade?"]
    when :websocket then env["rack.upgrade"] = ECHO
    when :sse then env["rack.upgrade"] = @events
    end
    case env["PATH_INFO"]
    when "/size" then [200, {}, [env["rack.input"].read.bytesize.to_s]]
    when "/large" then [200, {}, [LARGE]]
    else [200, {}, [env.values_at("rack.url_scheme", "HTTPS", "REMOTE_ADDR").join(" ")]]
    end
  end

  # @return [Integer] the port for TLS
  def serve_secret(**settings)
    server = start(lint: false, **settings) { |env| answer(env) }.server
    server.listen("ssl://127.0.0.1:0?#{@pair.query}")[/\d+\z/].to_i
  end

  PROXIES.each do |title, (name, options)|
    define_method("test_#{title}") do
      skip "#{name} is not installed" unless ProxyProcess.find(name)
      headers = options.to_s.include?("send-proxy")
      port = serve_secret(proxy_protocol_from: headers ? ["127.0.0.1"] : [])
      @proxy = ProxyProcess.new(name, port, patience: "30s", **options)
      check_requests
      check_websocket
      check_events
    end
  end

  # One after the other: the proxy needs one connection, and keeps it.
  def check_requests
    Net::HTTP.start("127.0.0.1", @proxy.port) do |http|
      5.times { assert_equal "https on 127.0.0.1", http.get("/").body }
      assert_equal LARGE.bytesize.to_s, http.post("/size", LARGE).body
      assert_equal LARGE, http.get("/large").body
    end
    assert_equal [7, 1], @running.last.server.stats.values_at(:requests, :tls_full)
  end

  def check_websocket
    peer = WebsocketPeer.new(@proxy.url)
    ["small", "x" * 100_000].each { |text| assert_equal text, peer.ask(text) }
    peer.close
  end

  # The second event leaves when the client has the first.
  def check_events
    stream = EventStream.new
    Net::HTTP.start("127.0.0.1", @proxy.port) do |http|
      http.request(Net::HTTP::Get.new("/", { "Accept" => "text/event-stream" })) do |response|
        response.read_body do |part|
          before = stream.events.size
          next if stream.feed(part).events.size == before

          @events.client.pop.tap { |client| client.event("second", id: 2) && client.close } if before.zero?
        end
      end
    end
    assert_equal [%w[message first 1], %w[message second 2]], stream.events.map(&:to_a)
  end
end
