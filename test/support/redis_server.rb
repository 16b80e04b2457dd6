# frozen_string_literal: true

# A Redis that belongs to the test: on a free port or a Unix socket, with a password, users or TLS, in a folder that is
# removed. A test can stop, freeze and kill it, and start it again at the same place.
# SPDX-License-Identifier: MIT

require "openssl"
require "support/child_server"

class RedisServer < ChildServer
  # @param unix [Boolean] listens on a Unix socket only
  # @param tls [Boolean] listens with TLS only
  # @param users [Array<String>] lines of the ACL file
  # @param words [Array<String>] further options of redis-server
  def initialize(*words, unix: false, tls: false, users: nil)
    super() do
      @unix = unix
      @tls = tls
      @words = [*place, *words]
      @words.push("--aclfile", write("users.acl", users)) if users
    end
  end

  # @param words [Array<String>] options of redis-server for this time
  def start(*words)
    @more = words
    super()
  end

  # @param credentials [String] "user:password"
  # @param database [Integer]
  def url(credentials = nil, database: nil)
    at = "#{credentials}@" if credentials
    return "unix://#{at}#{socket_path}#{"?db=#{database}" if database}" if @unix

    "#{@tls ? "rediss" : "redis"}://#{at}127.0.0.1:#{port}#{"/#{database}" if database}"
  end

  def socket_path
    File.join(folder, "redis.sock")
  end

  # @return [String] path of the certificate that signed the server's
  def ca_file
    File.join(folder, "ca.pem")
  end

  # @return [String] the output of redis-cli
  def cli(*words)
    where = @unix ? ["-s", socket_path] : ["-p", port.to_s]
    IO.popen(["redis-cli", *where, *words, { err: %i[child out] }], &:read).chomp
  end

  # @return [Array<Hash{String => String}>] all connections except the one that asks
  def clients
    cli("CLIENT", "LIST").lines.map { |line| line.split.to_h { |word| word.split("=", 2) } }
                         .reject { |client| client["cmd"].start_with?("client") }
  end

  private

  def command
    ["redis-server", "--save", "", "--appendonly", "no", "--dir", folder, "--loglevel", "warning", *@words, *@more]
  end

  def connect
    @unix ? UNIXSocket.new(socket_path) : super
  end

  def place
    return ["--port", "0", "--unixsocket", socket_path] if @unix
    return ["--bind", "127.0.0.1", "--port", port.to_s] unless @tls

    make_certificates
    ["--bind", "127.0.0.1", "--port", "0", "--tls-port", port.to_s, "--tls-cert-file", File.join(folder, "server.pem"),
     "--tls-key-file", File.join(folder, "server.key"), "--tls-ca-cert-file", ca_file, "--tls-auth-clients", "no"]
  end

  def write(name, lines)
    File.join(folder, name).tap { |path| File.write(path, Array(lines).map { |line| "#{line}\n" }.join) }
  end

  def make_certificates
    ca_key, server_key = Array.new(2) { OpenSSL::PKey::EC.generate("prime256v1") }
    ca = certificate("rondo test CA", ca_key, [["basicConstraints", "CA:TRUE", true]])
    ca.sign(ca_key, "SHA256")
    server = certificate("127.0.0.1", server_key, [["subjectAltName", "IP:127.0.0.1", false]], ca)
    server.sign(ca_key, "SHA256")
    write("ca.pem", ca.to_pem)
    write("server.pem", server.to_pem)
    write("server.key", server_key.to_pem)
  end

  def certificate(name, key, extensions, issuer = nil)
    OpenSSL::X509::Certificate.new.tap do |made|
      made.version = 2
      made.serial = issuer ? 2 : 1
      made.subject = OpenSSL::X509::Name.parse("/CN=#{name}")
      made.issuer = issuer ? issuer.subject : made.subject
      made.public_key = key
      made.not_before = Time.now - 60
      made.not_after = Time.now + 3600
      factory = OpenSSL::X509::ExtensionFactory.new(issuer || made, made)
      extensions.each { |words| made.add_extension(factory.create_extension(*words)) }
    end
  end
end
