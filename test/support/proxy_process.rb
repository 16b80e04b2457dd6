# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# nginx or haproxy as a subprocess in front of a server, with a configuration of a few lines. It changes as little as
# possible on the way, passes on WebSockets, and has short deadlines.

require "fileutils"
require "socket"
require "tmpdir"
require_relative "held_port"

class ProxyProcess
  KEEP_ALIVE = "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $way;"

  attr_reader :url

  def self.find(name)
    folders = ENV.fetch("PATH", "").split(":").push("/usr/sbin")
    folders.map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) }
  end

  # @param name [String] "nginx" or "haproxy"
  # @param port [Integer] of the server behind it
  # @param patience [String] how long it waits for either side
  # @param nginx [String] how nginx talks to the server; by its defaults that is HTTP/1.0
  # @param haproxy [String] further lines of haproxy's backend
  # @param server [String] further words of its line "server"
  # @param scheme [String] how nginx talks to the server; haproxy has words of `server` for that
  def initialize(name, port, patience: "1s", nginx: KEEP_ALIVE, haproxy: "", server: "", scheme: "http")
    @patience = patience
    @location = nginx
    @backend = haproxy
    @server = server
    @scheme = scheme
    @directory = Dir.mktmpdir("rondo-proxy")
    @held = HeldPort.new
    own = @held.number
    @url = "http://127.0.0.1:#{own}"
    config = File.join(@directory, "proxy.conf")
    File.write(config, name == "nginx" ? nginx_config(own, port) : haproxy_config(own, port))
    arguments = name == "nginx" ? ["-p", @directory, "-c", config] : ["-f", config]
    @pid = Process.spawn(self.class.find(name), *arguments, in: File::NULL, out: log, err: log)
    wait
  end

  # @return [Integer] its own
  def port
    @held.number
  end

  def stop
    Process.kill("TERM", @pid)
    Process.wait(@pid)
    @held.close
    FileUtils.rm_rf(@directory)
  end

  private

  def log
    File.join(@directory, "log")
  end

  def nginx_config(own, port)
    <<~CONFIG
      daemon off; master_process off; pid #{@directory}/pid; error_log #{@directory}/error.log;
      events { worker_connections 256; }
      http {
        access_log off; client_body_temp_path #{@directory}/body; proxy_temp_path #{@directory}/proxy;
        fastcgi_temp_path #{@directory}/f; uwsgi_temp_path #{@directory}/u; scgi_temp_path #{@directory}/s;
        underscores_in_headers on; ignore_invalid_headers off;
        map $http_upgrade $way { default ""; websocket Upgrade; }
        upstream app { server 127.0.0.1:#{port}; keepalive 4; }
        server {
          listen 127.0.0.1:#{own}; lingering_timeout 1s; client_header_timeout 1s; keepalive_timeout 1s;
          location / {
            proxy_pass #{@scheme}://app; #{@location} proxy_set_header Host a;
            proxy_request_buffering off; proxy_next_upstream off; proxy_read_timeout #{@patience}; client_body_timeout 1s;
          }
        }
      }
    CONFIG
  end

  def haproxy_config(own, port)
    <<~CONFIG
      global
        maxconn 256
        nbthread 1
      defaults
        mode http
        retries 0
        timeout connect 3s
        timeout client #{@patience}
        timeout server #{@patience}
        timeout http-request 1s
        option http-keep-alive
        http-reuse always
      frontend in
        bind 127.0.0.1:#{own}
        default_backend app
      backend app
        #{@backend.gsub("\n", "\n  ").strip}
        server app 127.0.0.1:#{port} #{@server}
    CONFIG
  end

  def wait
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    begin
      TCPSocket.new("127.0.0.1", port).close
    rescue Errno::ECONNREFUSED
      raise "the proxy does not start: #{File.read(log)}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, 0.02)
      retry
    end
  end
end
