# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# An ACME server (RFC 8555) in the process of the test that says what the test wants, when the test wants it: refusals,
# delays, certificates that are wrong. It believes everything: pebble (pebble.rb) is the one that checks.

require "base64"
require "json"
require "openssl"
require "socket"
require "support/certificates"

class AcmeServer
  KINDS = { newNonce: "nonce", newAccount: "account", newOrder: "new", revokeCert: "revoke", keyChange: "key" }.freeze
  REASONS = { 200 => "OK", 201 => "Created" }.freeze

  # @return [String] path of the authority of its own certificate
  attr_reader :authority
  # @return [Array<String>] the kinds of what was asked for, without nonces
  attr_reader :asked
  # @return [Range] days of the certificates that it issues, from now
  attr_accessor :days

  # @param folder [String] for its files
  def initialize(folder)
    @certificates = Certificates.new(folder, "acme")
    @authority = @certificates.authority
    pair = @certificates.pair("acme-server")
    @context = OpenSSL::SSL::SSLContext.new
    @context.cert = OpenSSL::X509::Certificate.new(File.read(pair.certificate))
    @context.key = OpenSSL::PKey.read(File.read(pair.key))
    @listener = TCPServer.new("127.0.0.1", 0)
    @asked = []
    @answers = Hash.new { |hash, kind| hash[kind] = [] }
    @days = -1..90
    @thread = Thread.new { accept }
  end

  # @return [String] URL
  def directory
    url("dir")
  end

  # The next time that somebody asks for this kind, that is the answer.
  # @param kind [String] dir, account, new, authz, order, finalize or cert
  # @param status [Integer]
  # @param body [Hash, String]
  # @param fields [Hash{String => String}]
  def answer(kind, status, body = {}, **fields)
    @answers[kind] << [status, fields.transform_keys { |name| name.to_s.tr("_", "-") }, body]
  end

  def refuse(kind, type, detail, status: 403, **fields)
    answer(kind, status, { type: "urn:ietf:params:acme:error:#{type}", detail: detail }, **fields)
  end

  # @return [Hash] an order of that state, for {#answer}
  def order(status)
    { status: status, identifiers: [{ type: "dns", value: @name }], authorizations: [url("authz")],
      finalize: url("finalize"), certificate: (url("cert") if status == "valid") }.compact
  end

  def close
    @thread.kill.join
    @listener.close
  end

  private

  def url(kind)
    "https://127.0.0.1:#{@listener.addr[1]}/#{kind}"
  end

  def accept
    loop { serve(@listener.accept) }
  end

  # Its client makes a connection for each request.
  def serve(socket)
    secure = OpenSSL::SSL::SSLSocket.new(socket, @context).accept
    secure.write(response(*read_request(secure)))
  rescue SystemCallError, OpenSSL::SSL::SSLError, EOFError
    nil
  ensure
    socket.close
  end

  def read_request(io)
    head = io.gets("\r\n\r\n") or raise EOFError
    method, target = head.split(" ", 3)
    body = io.read(head[/^content-length: (\d+)/i, 1].to_i)
    payload = body.to_s.empty? ? "" : JSON.parse(body)["payload"]
    [method, target.delete_prefix("/"), payload.empty? ? {} : JSON.parse(Base64.urlsafe_decode64(payload))]
  end

  def response(method, kind, payload)
    @asked << kind unless kind == "nonce"
    status, fields, body = @answers[kind].shift || usual(kind, payload)
    type = body.is_a?(String) ? "text/html" : "application/#{"problem+" if status >= 400}json"
    text = body.is_a?(String) ? body : JSON.generate(body)
    fields = { "content-type" => type, "replay-nonce" => OpenSSL::Random.random_bytes(8).unpack1("H*"),
               "content-length" => text.bytesize, "connection" => "close", **fields }
    head = ["HTTP/1.1 #{status} #{REASONS[status] || "No"}", *fields.map { |name, value| "#{name}: #{value}" }, "", ""]
    head.join("\r\n") + (method == "HEAD" ? "" : text)
  end

  def usual(kind, payload)
    case kind
    when "dir" then [200, {}, { **KINDS.transform_values { |each| url(each) }, meta: {} }]
    when "account" then [201, { "location" => url("account") }, { status: "valid", contact: payload["contact"] }]
    when "new" then made(payload)
    when "authz" then [200, {}, { status: "valid", identifier: { type: "dns", value: @name }, challenges: [] }]
    when "finalize" then finalized(payload)
    when "order" then [200, {}, order(@chain ? "valid" : "ready")]
    when "cert" then [200, { "content-type" => "application/pem-certificate-chain" }, @chain]
    else [200, {}, ""]
    end
  end

  def made(payload)
    @name = payload["identifiers"].first["value"]
    @chain = nil
    [201, { "location" => url("order") }, order("pending")]
  end

  def finalized(payload)
    request = OpenSSL::X509::Request.new(Base64.urlsafe_decode64(payload["csr"]))
    made = @certificates.certificate(@name, request.public_key, days: @days) do |one, extensions|
      one.add_extension(extensions.create_extension("subjectAltName", "DNS:#{@name}"))
    end
    @chain = made.to_pem
    [200, { "location" => url("order") }, order("processing")]
  end
end
