# frozen_string_literal: true

# What the tests of TLS share: certificates in the test's folder, servers that show them, and clients that
# are not ours: curl, openssl, Ruby's OpenSSL.
# SPDX-License-Identifier: MIT

require_relative "../shell_case"
require "openssl"
require "support/certificates"

class TLSCase < ShellCase
  APP = <<~RUBY
    run lambda { |env|
      case env["PATH_INFO"]
      when "/size" then [200, {}, [env["rack.input"].read.bytesize.to_s]]
      when "/pid" then [200, {}, [Process.pid.to_s]]
      when "/parts" then [200, {}, Enumerator.new { |y| 3.times { |n| y << "part \#{n} " } }]
      when "/big" then [200, {}, ["0123456789" * 300_000]]
      when "/short" then [200, { "content-length" => "8" }, ["half"]]
      when "/raises" then [200, {}, Enumerator.new { |y| y << "half"; raise "no more" }]
      when "/hijack"
        io = env["rack.hijack"].call
        Thread.new { io.write("HTTP/1.1 200 OK\\r\\nconnection: close\\r\\n\\r\\n\#{io.readline}"); io.close }
        [-1, {}, []]
      else [200, {}, [[env["rack.url_scheme"], env["HTTPS"], env["SERVER_PORT"]].join(" ")]]
      end
    }
  RUBY

  def setup
    super
    @certificates = Certificates.new(@folder)
    @pair = @certificates.pair("server")
    write "config.ru", APP
  end

  # @param query [String] of the address
  def secure(*words, query: @pair.query, **options)
    start(*words, binds: ["ssl://127.0.0.1:0?#{query}"], **options)
  end

  # @return [Result] of curl, which trusts the test's authority
  def curl(server, path = "/", *words, host: "localhost")
    run_command("curl", "-sS", "--max-time", PATIENCE.to_s, "--cacert", @certificates.authority,
                "--resolve", "#{host}:#{server.port}:127.0.0.1", *words, "https://#{host}:#{server.port}#{path}")
  end

  # @return [Result] of openssl, whose standard input is at its end
  def openssl(command, server, *words)
    run_command("openssl", command, "-connect", "127.0.0.1:#{server.port}", "-CAfile", @certificates.authority, *words)
  end

  # Yields a connection after its handshake.
  def connect(server)
    context = OpenSSL::SSL::SSLContext.new
    context.set_params(ca_file: @certificates.authority)
    socket = TCPSocket.new("127.0.0.1", server.port)
    secure = OpenSSL::SSL::SSLSocket.new(socket, context)
    secure.hostname = "localhost"
    secure.connect
    yield secure
  ensure
    socket&.close
  end
end
