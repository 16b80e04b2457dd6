# frozen_string_literal: true

# A gate (see waiting_clients.rb) behind HTTP or HTTPS, in a process of its own.
# SPDX-License-Identifier: MIT

require "net/http"
require "rbconfig"
require_relative "certificates"
require_relative "child_server"

class HTTPGate < ChildServer
  PROGRAM = File.expand_path("http_gate_program.rb", __dir__)

  # @param tls [Boolean]
  def initialize(tls: false)
    super() { @certificates = tls ? Certificates.new(folder) : nil }
  end

  # @return [String]
  def url(path = "/", host: "127.0.0.1")
    "#{@certificates ? "https" : "http"}://#{host}:#{port}#{path}"
  end

  # @return [String] path of the certificate that clients have to trust
  def authority
    @certificates.authority
  end

  def inside
    Integer(ask("/inside"))
  end

  def open
    ask("/open")
  end

  def shut
    ask("/shut")
  end

  def kill_session(number)
    ask("/kill/#{number}")
  end

  alias crash kill

  private

  def command
    @pair ||= @certificates&.pair("server")
    [{ "GATE_PORT" => port.to_s }, RbConfig.ruby, "--disable-gems", PROGRAM, *(@pair ? [@pair.certificate, @pair.key] : [])]
  end

  def ask(path)
    options = @certificates ? { use_ssl: true, ca_file: authority } : {}
    Net::HTTP.start("127.0.0.1", port, **options) { |http| http.get(path).body }
  end
end
