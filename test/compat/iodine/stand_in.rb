# frozen_string_literal: true

# Runs a program where hosts of the internet are this machine: in name spaces of its own, with a network that has only
# its loopback, a file /etc/hosts, and at port 443 a server that answers a GET and echoes WebSockets. A certificate for
# these hosts and its authority are made first. Run as `ruby stand_in.rb PROGRAM`; ends as the program does.
# SPDX-License-Identifier: MIT

require "openssl"
require "rbconfig"
require "socket"

module StandIn
  HOSTS = %w[google.com echo.websocket.org].freeze
  GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
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
    OpenSSL::SSL::SSLContext.new.tap do |context|
      context.add_certificate(*certificate)
      context.alpn_select_cb = ->(offered) { offered.first }
    end
  end

  # Its own authority.
  def certificate
    key = OpenSSL::PKey::EC.generate("prime256v1")
    own = OpenSSL::X509::Certificate.new
    own.version = 2
    own.serial = 1
    own.subject = own.issuer = OpenSSL::X509::Name.parse("/CN=stand-in")
    own.public_key = key
    own.not_before = Time.now - 60
    own.not_after = Time.now + 3600
    words = OpenSSL::X509::ExtensionFactory.new(own, own)
    own.add_extension(words.create_extension("basicConstraints", "CA:TRUE", true))
    own.add_extension(words.create_extension("subjectAltName", HOSTS.map { |host| "DNS:#{host}" }.join(",")))
    own.sign(key, "SHA256")
    File.write("authority.pem", own.to_pem)
    [own, key]
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
    accept = [OpenSSL::Digest.digest("SHA1", key + GUID)].pack("m0")
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
