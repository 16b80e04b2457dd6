# frozen_string_literal: true

# An ACME server that belongs to the test: Let's Encrypt's pebble, with a server for names beside it that says
# 127.0.0.1 for all of them. Its own certificate is of an authority of its own, as its clients have to be told.
# SPDX-License-Identifier: MIT

require "json"
require "net/http"
require "support/certificates"
require "support/child_server"

class Pebble < ChildServer
  # External accounts, by their ids.
  KEYS = { "kid-1" => "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W" }.freeze

  # Names and addresses, for the server for names alone.
  class Names < ChildServer
    private

    # Its port for orders is the one that is waited for.
    def command
      says, = Open3.capture2e("pebble-challtestsrv", "-help")
      newer = says.include?("-dnsserver") ? ["-doh", "", "-dnsserver"] : ["-dns01"]
      ["pebble-challtestsrv", "-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", "",
       *newer, "127.0.0.1:#{port}", "-management", ""]
    end
  end

  # @return [String] path of the authority of its own certificate
  attr_reader :authority

  # @param http_port [Integer] where it looks for tokens
  # @param lifetime [Integer] of certificates, in seconds
  # @param bound [Boolean] whether it wants an external account
  def initialize(http_port, lifetime: 90 * 86_400, bound: false)
    @http_port = http_port
    @lifetime = lifetime
    @bound = bound
    @names = Names.new
    @management = HeldPort.new
    super() { prepare }
  end

  # @return [String] URL
  def directory
    "https://localhost:#{port}/dir"
  end

  # @return [String] path of the authority that signs what it issues
  def root
    File.join(@folder, "root.pem").tap { |path| File.write(path, get("/roots/0")) }
  end

  # @return [Integer] certificates so far
  def issued
    File.read(log_path).scan("Issued certificate serial").size
  end

  def close
    super
    @names.close
    @management.close
  end

  private

  def prepare
    certificates = Certificates.new(@folder)
    pair = certificates.pair("pebble")
    @authority = certificates.authority
    write_configuration(pair)
  end

  def write_configuration(pair)
    own = { listenAddress: "127.0.0.1:#{port}", managementListenAddress: "127.0.0.1:#{@management.number}",
            certificate: pair.certificate, privateKey: pair.key, httpPort: @http_port, tlsPort: 1,
            externalAccountBindingRequired: @bound, externalAccountMACKeys: KEYS, certificateValidityPeriod: @lifetime }
    File.write(File.join(@folder, "config.json"), JSON.generate(pebble: own))
  end

  def command
    ["env", "PEBBLE_VA_NOSLEEP=1", "pebble", "-config", File.join(@folder, "config.json"),
     "-dnsserver", "127.0.0.1:#{@names.port}"]
  end

  def get(path)
    http = Net::HTTP.new("localhost", @management.number)
    http.use_ssl = true
    http.ca_file = @authority
    http.get(path).body
  end
end
