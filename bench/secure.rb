# frozen_string_literal: true

# TLS for the benchmarks: a certificate for each kind of key, and how each server is started with one. All servers of a
# scenario have the same certificate, and the client (client_tls.c) offers one cipher. Used by servers.rb.
# SPDX-License-Identifier: MIT

require "fileutils"
require "openssl"

module Bench
  # A certificate that signs itself, and its key, as files.
  class Pair
    DAY = 86_400
    KEYS = { p256: -> { OpenSSL::PKey::EC.generate("prime256v1") },
             rsa2048: -> { OpenSSL::PKey::RSA.new(2048) } }.freeze

    # @return [String] a path
    attr_reader :cert, :key

    # @param kind [Symbol] one of {KEYS}
    # @param folder [String] where the files are, or are written
    def initialize(kind, folder)
      FileUtils.mkdir_p(folder)
      @cert = File.join(folder, "#{kind}.cert.pem")
      @key = File.join(folder, "#{kind}.key.pem")
      write(KEYS.fetch(kind).call) unless valid?
    end

    private

    def valid?
      File.exist?(@cert) && OpenSSL::X509::Certificate.new(File.read(@cert)).not_after > Time.now + DAY
    end

    def write(key)
      File.write(@key, key.private_to_pem, perm: 0o600)
      File.write(@cert, certificate(key).to_pem)
    end

    def certificate(key)
      OpenSSL::X509::Certificate.new.tap do |made|
        made.version = 2
        made.serial = 1
        made.subject = made.issuer = OpenSSL::X509::Name.new([%w[CN localhost]])
        made.not_before = Time.now - DAY
        made.not_after = Time.now + (30 * DAY)
        made.public_key = key
        names = "DNS:localhost,IP:127.0.0.1"
        made.add_extension(OpenSSL::X509::ExtensionFactory.new.create_extension("subjectAltName", names))
        made.sign(key, "SHA256")
      end
    end
  end

  # The servers that can end TLS: for each a block that returns its command.
  module Secure
    NGINX = "ssl_certificate %<cert>s; ssl_certificate_key %<key>s; ssl_protocols TLSv1.3;"

    # It has no words for a certificate on its command line.
    FALCON = <<~RUBY
      require "async/http/endpoint"
      require "falcon/server"
      require "rack/builder"
      port, app, cert, key = ARGV
      context = OpenSSL::SSL::SSLContext.new
      context.add_certificate(OpenSSL::X509::Certificate.new(File.read(cert)), OpenSSL::PKey.read(File.read(key)))
      context.session_id_context = "falcon"
      context.alpn_select_cb = ->(offered) { (offered & %w[h2 http/1.1]).first }
      endpoint = Async::HTTP::Endpoint.parse("https://127.0.0.1:\#{port}", ssl_context: context)
      application, = Rack::Builder.parse_file(app)
      Sync { Falcon::Server.new(Falcon::Server.middleware(application), endpoint).run }
    RUBY

    module_function

    # @param port [Integer]
    # @param pair [Pair]
    # @return [String] the address for Rondo and for Puma
    def address(port, pair)
      "ssl://127.0.0.1:#{port}?cert=#{pair.cert}&key=#{pair.key}"
    end

    # @param folder [String] of the server, with its nginx.conf
    def nginx(folder, pair)
      path = File.join(folder, "nginx.conf")
      lines = format(NGINX, cert: pair.cert, key: pair.key)
      plain = File.read(path)
      listen = plain[/listen [^;]*;/]
      File.write(path, plain.sub(listen, "#{listen.sub(/[\d.:]+/, "\\0 ssl")} #{lines}"))
    end

    # @param folder [String] of the server, with its Itsi.rb
    def itsi(folder, pair)
      path = File.join(folder, "Itsi.rb")
      File.write(path, File.read(path).sub(%r{http://[\d.:]+}) do |plain|
        "#{plain.sub("http", "https")}?cert=#{pair.cert}&key=#{pair.key}"
      end)
    end

    # @return [Array<String>] arguments of the Ruby command
    def falcon(port, app, folder, pair)
      script = File.join(folder, "falcon.rb")
      File.write(script, FALCON)
      [script, port.to_s, app, pair.cert, pair.key]
    end
  end
end
