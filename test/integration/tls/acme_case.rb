# frozen_string_literal: true

# What the tests of fetched certificates share: a server with --tls-domain on ports of its own, and clients of both ports.
# SPDX-License-Identifier: MIT

require_relative "tls_case"
require "support/held_port"
require "support/pebble"

class AcmeCase < TLSCase
  NAME = "app.example.com"

  def setup
    super
    @ports = Array.new(2) { HeldPort.new }
  end

  def teardown
    super
    @pebble&.close
    @ports.each(&:close)
  end

  def https_port
    @ports.first.number
  end

  def http_port
    @ports.last.number
  end

  def pebble(**options)
    @pebble ||= Pebble.new(http_port, **options)
  end

  # @return [Array<String>] the options of a server
  def words(names: [NAME], directory: pebble.directory, authority: pebble.authority)
    [*names.flat_map { |name| ["--tls-domain", name] }, "--tls-directory", directory, "--tls-directory-ca", authority,
     "--tls-storage", "state", "--tls-port", https_port.to_s, "--tls-http-port", http_port.to_s]
  end

  def environment
    { "HOST" => "127.0.0.1" }
  end

  # @return [Server] whose two ports are open
  def fetching(*more, env: {}, binds: [], spawn: {}, **options)
    server = start(*words(**options), *more, binds: binds, env: environment.merge(env), spawn: spawn)
    server.wait_for_log(/^Use Ctrl-C to stop$/)
    server
  end

  # @return [OpenSSL::X509::Certificate, nil] what the server shows, if it shows one
  def shown(name = NAME)
    socket = TCPSocket.new("127.0.0.1", https_port)
    secure = OpenSSL::SSL::SSLSocket.new(socket)
    secure.hostname = name
    secure.connect
    secure.peer_cert
  rescue OpenSSL::SSL::SSLError, SystemCallError
    nil
  ensure
    socket&.close
  end

  def fetch(name = NAME, path = "/", *more)
    run_command("curl", "-sS", "--cacert", pebble.root, "--resolve", "#{name}:#{https_port}:127.0.0.1", *more,
                "https://#{name}:#{https_port}#{path}")
  end

  # @return [Result] of curl on port 80
  def plain(path, *more)
    run_command("curl", "-sSi", "--max-time", PATIENCE.to_s, *more, "http://127.0.0.1:#{http_port}#{path}")
  end

  def stored(name = NAME)
    File.join(@folder, "state/live/#{name}.pem")
  end

  def renew(*more, **options)
    rondo("cert", "renew", *words(**options), *more, env: environment)
  end
end
