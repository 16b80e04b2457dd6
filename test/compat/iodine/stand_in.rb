# frozen_string_literal: true

# Runs a program where hosts of the internet are this machine: in name spaces of its own, with a network that has only
# its loopback, a file /etc/hosts, and at port 443 a server that answers a GET and echoes WebSockets. A certificate for
# these hosts and its authority are made first. Run as `ruby stand_in.rb PROGRAM`; ends as the program does.
# SPDX-License-Identifier: MIT

require "openssl"
require "rbconfig"
require "socket"
require_relative "../../support/certificates"
require_relative "../../support/websocket_frames"

module StandIn
  HOSTS = %w[google.com echo.websocket.org].freeze
  ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n"
  SPACES = %w[unshare --map-root-user --mount --net].freeze

  module_function

  # @return [Boolean] whether this machine lets its user do that
  def possible?
    system(*SPACES, "sh", "-c", "ip link set lo up && mount --bind /etc/hosts /etc/hosts", out: File::NULL, err: File::NULL) || false
  end

  def run(program)
    return exec({ "STAND_IN" => "1", "RUBYLIB" => $LOAD_PATH.join(":") }, *SPACES, RbConfig.ruby, "--disable-gems", __FILE__, program) unless ENV["STAND_IN"]

    File.write("hosts", HOSTS.map { |host| "127.0.0.1 #{host}\n" }.join)
    system("ip", "link", "set", "lo", "up", exception: true)
    system("mount", "--bind", "hosts", "/etc/hosts", exception: true)
    serve(TCPServer.new("127.0.0.1", 443))
    pid = spawn({ "SSL_CERT_FILE" => File.expand_path("authority.pem") }, RbConfig.ruby, "--disable-gems",
                "-r#{File.join(__dir__, "sync_output.rb")}", program)
    exit Process.wait2(pid).last.exitstatus
  end

  def serve(listener)
    secure = OpenSSL::SSL::SSLServer.new(listener, tls)
    Thread.new do
      loop { Thread.new(secure.accept) { |socket| answer(socket) } }
    end
  end

  def tls
    pair = Certificates.new(".").pair("stand-in", names: HOSTS.map { |host| "DNS:#{host}" })
    OpenSSL::SSL::SSLContext.new.tap do |context|
      context.add_certificate(OpenSSL::X509::Certificate.new(File.read(pair.certificate)), OpenSSL::PKey.read(File.read(pair.key)))
      context.alpn_select_cb = ->(offered) { offered.first }
    end
  end

  def answer(socket)
    head = +""
    head << socket.readpartial(1000) until head.include?("\r\n\r\n")
    key = head[/^sec-websocket-key: (\S+)/i, 1]
    key ? echo(socket, key) : socket.write(ANSWER)
    socket.read # until the client has closed
  rescue EOFError, SystemCallError, OpenSSL::SSL::SSLError
    nil
  ensure
    socket.close
  end

  # Short messages in one frame each.
  def echo(socket, key)
    accept = WebsocketFrames.accept_key(key)
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: #{accept}\r\n\r\n")
    loop do
      first, size = socket.read(2).unpack("CC")
      mask = socket.read(4).bytes
      words = socket.read(size & 127).bytes.each_with_index.map { |byte, at| byte ^ mask[at % 4] }
      socket.write([first, words.size, *words].pack("C*"))
      break if first & 15 == 8
    end
  end
end

StandIn.run(ARGV.fetch(0)) if $PROGRAM_NAME == __FILE__
