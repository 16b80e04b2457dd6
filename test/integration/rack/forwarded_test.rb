# frozen_string_literal: true

# A hostile client behind nginx and haproxy, alone and one behind the other: the application gets the address, scheme
# and port that the proxies saw, whatever fields the client sends. Each host of the tests has a loopback address of its
# own.
# SPDX-License-Identifier: MIT

require_relative "rack_case"
require "json"
require "support/proxy_process"

class ForwardedTest < RackCase
  KEYS = %w[REMOTE_ADDR rack.url_scheme SERVER_PORT].freeze
  PROXY = "127.0.0.1"
  FRONT = "127.0.0.3"
  CLIENT = "127.0.0.2"
  # The fields that the client sends: both families, more than once, with addresses of proxies and of others.
  HOSTILE = <<~FIELDS.gsub("\n", "\r\n")
    Forwarded: for=6.6.6.6;proto=https;host=evil.example
    Forwarded: for=127.0.0.1;proto=https
    X-Forwarded-For: 6.6.6.6, 127.0.0.1
    X-Forwarded-For: 127.0.0.3
    X-Forwarded-Proto: https
    X-Forwarded-Port: 8443
    X-Forwarded-Host: evil.example
    X-Forwarded-Scheme: https
    X-Forwarded-Ssl: on
    X-Real-Ip: 6.6.6.6
  FIELDS

  # The configuration of nginx and haproxy from DEPLOYMENT.md: fields are appended or overwritten.
  NGINX = {
    x_forwarded: <<~CONFIG,
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Port $server_port;
    CONFIG
    forwarded: 'proxy_set_header Forwarded "for=$remote_addr;proto=$scheme";'
  }.freeze
  HAPROXY = {
    x_forwarded: <<~CONFIG,
      option forwardfor
      http-request set-header X-Forwarded-Proto %[ssl_fc,iif(https,http)]
      http-request set-header X-Forwarded-Port %[dst_port]
    CONFIG
    forwarded: "http-request add-header Forwarded for=%[src];proto=http"
  }.freeze
  # Passes on the client's statement about the other hop, and adds its own.
  NGINX_FRONT = {
    x_forwarded: NGINX[:x_forwarded],
    forwarded: 'proxy_set_header Forwarded "$http_forwarded, for=$remote_addr;proto=$scheme";'
  }.freeze

  def setup
    super
    @proxies = []
  end

  def teardown
    @proxies.each(&:stop)
    super
  end

  def serve_behind(trusted, **settings)
    start(trusted_proxies: trusted, **settings) do |env|
      [200, { "content-type" => "application/json" }, [JSON.generate(env.values_at(*KEYS))]]
    end.port
  end

  def proxy(name, port, **options)
    skip "#{name} is not installed" unless ProxyProcess.find(name)
    ProxyProcess.new(name, port, patience: "30s", **options).tap { |proxy| @proxies << proxy }
  end

  # @return [Array<String>] KEYS, as the application got them
  def told(port, fields = HOSTILE)
    socket = TCPSocket.new("127.0.0.1", port, CLIENT, 0)
    socket.write("GET / HTTP/1.1\r\nHost: test.example\r\nConnection: close\r\n#{fields}\r\n")
    JSON.parse(socket.read[/^\[.*\]/])
  ensure
    socket&.close
  end

  def check_one(name, family, port_told, **options)
    front = proxy(name, serve_behind([PROXY], trusted_proxy_fields: family), **options)
    assert_equal [CLIENT, "http", port_told ? front.port.to_s : "80"], told(front.port)
    assert_equal [CLIENT, "http", port_told ? front.port.to_s : "80"], told(front.port, "")
  end

  def test_nginx_with_x_forwarded = check_one("nginx", :x_forwarded, true, nginx: NGINX[:x_forwarded])
  def test_nginx_with_forwarded = check_one("nginx", :forwarded, false, nginx: NGINX[:forwarded])
  def test_haproxy_with_x_forwarded = check_one("haproxy", :x_forwarded, true, haproxy: HAPROXY[:x_forwarded])
  def test_haproxy_with_forwarded = check_one("haproxy", :forwarded, false, haproxy: HAPROXY[:forwarded])

  # The setting names the family that counts. A proxy that writes only the other one has no effect.
  def test_a_proxy_that_writes_the_other_family_says_nothing
    port = serve_behind([PROXY], trusted_proxy_fields: :forwarded)
    front = proxy("nginx", port, nginx: "#{NGINX[:x_forwarded]} proxy_set_header Forwarded '';")
    assert_equal [PROXY, "http", "80"], told(front.port)
  end

  # A field that a proxy neither writes nor removes comes from the client: SECURITY.md and DEPLOYMENT.md say so.
  def test_what_a_proxy_passes_on_is_believed
    port = serve_behind([PROXY])
    front = proxy("nginx", port, nginx: "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;")
    assert_equal [CLIENT, "https", "8443"], told(front.port)
  end

  # nginx, haproxy behind it, the server behind that: both are listed, both write the same family.
  def check_two(family)
    port = serve_behind([PROXY, FRONT], trusted_proxy_fields: family)
    back = proxy("haproxy", port, haproxy: HAPROXY[family])
    front = proxy("nginx", back.port, nginx: "#{NGINX_FRONT[family]} proxy_bind #{FRONT};")
    assert_equal [CLIENT, "http"], told(front.port).take(2)
    assert_equal [CLIENT, "http"], told(back.port).take(2), "past the first one"
  end

  def test_two_proxies_with_x_forwarded = check_two(:x_forwarded)
  def test_two_proxies_with_forwarded = check_two(:forwarded)

  # nginx writes one family, haproxy the other. The one that the setting names counts, as far as its proxies go.
  def test_two_proxies_with_two_families
    x_fields, standard = %i[x_forwarded forwarded].map { |family| serve_behind([PROXY], trusted_proxy_fields: family) }
    told = [x_fields, standard].map do |port|
      back = proxy("haproxy", port, haproxy: HAPROXY[:forwarded])
      told(proxy("nginx", back.port, nginx: "#{NGINX[:x_forwarded]} proxy_bind #{FRONT};").port)
    end
    assert_equal [[CLIENT, "http"], [FRONT, "http"]], told.map { |values| values.take(2) }
  end

  # haproxy names its own client by the PROXY protocol. That client is nginx, which names the client behind it. Other
  # clients of haproxy are not listed, and their fields are not read.
  def check_proxy_protocol(family)
    skip "needs a client that sends a PROXY header before the handshake, and the XOR proxy sends none" if XorProxy.on?
    port = serve_behind([FRONT], trusted_proxy_fields: family, proxy_protocol_from: [PROXY])
    back = proxy("haproxy", port, server: "send-proxy-v2")
    front = proxy("nginx", back.port, nginx: "#{NGINX[family]} proxy_bind #{FRONT};")
    assert_equal [CLIENT, "http"], told(front.port).take(2)
    assert_equal [CLIENT, "http", "80"], told(back.port)
  end

  def test_proxy_protocol_with_x_forwarded = check_proxy_protocol(:x_forwarded)
  def test_proxy_protocol_with_forwarded = check_proxy_protocol(:forwarded)
end
