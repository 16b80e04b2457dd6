# frozen_string_literal: true

# Delivers the rules of rules.rb to real servers, each in four ways, whose results must be the same: whole; in segments
# of one byte; in records of one byte; in both.
# SPDX-License-Identifier: MIT

require "openssl"
require "socket"
require "support/certificates"
require "support/server_process"
require_relative "rules"

class TLSRulesRunner
  PATIENCE = 60
  LONG = 2000 # longer texts are sent in pieces of a hundred bytes
  WAYS = { whole: [nil, nil], segments: [1, nil], records: [nil, 1], both: [1, 1] }.freeze
  APP = <<~RUBY
    run lambda { |env|
      case env["PATH_INFO"]
      when "/size" then [200, {}, [env["rack.input"].read.bytesize.to_s]]
      when "/cut" then [200, {}, Enumerator.new { |y| y << "half"; raise "cut" }]
      when "/short" then [200, { "content-length" => "8" }, ["half"]]
      else [200, {}, [env["rack.url_scheme"]]]
      end
    }
  RUBY

  # Between a client and the server: what the client says comes in segments of this size.
  class Segments
    attr_reader :socket

    def initialize(port, size)
      @socket, ours = UNIXSocket.pair
      server = TCPSocket.new("127.0.0.1", port)
      server.setsockopt(:TCP, :NODELAY, true)
      @threads = [Thread.new { carry(ours, server, size) }, Thread.new { carry(server, ours, 65_536) }]
    end

    def finish
      @socket.close unless @socket.closed?
      @threads.each(&:join)
    end

    private

    def carry(from, to, size)
      loop do
        bytes = from.readpartial(65_536)
        (0...bytes.bytesize).step(size) { |at| to.write(bytes.byteslice(at, size)) }
      end
    rescue EOFError
      to.close_write
    rescue SystemCallError, IOError
      reset(from)
      reset(to)
    end

    def reset(socket)
      socket.close
    rescue IOError
      nil
    end
  end

  def initialize(folder)
    @folder = folder
    @certificates = Certificates.new(folder)
    @server = @certificates.pair("server")
    @servers = {}
    make_identities
    File.write(File.join(folder, "config.ru"), APP)
  end

  def stop
    @servers.each_value(&:stop)
  end

  # @return [Array<String>] what is wrong
  def failures(rule)
    ways = rule.client[:raw] ? WAYS.slice(:whole, :segments) : WAYS
    found = ways.filter_map do |way, (segment, record)|
      wrong = compare(rule, attempt(rule, segment, record))
      "#{rule.id} #{rule.title}, #{way}: #{wrong}" if wrong
    end
    rule.expected[:log] ? found + logged(rule) : found
  end

  private

  def make_identities
    elsewhere = File.join(@folder, "elsewhere").tap { |path| Dir.mkdir(path) }
    @identities = { friend: @certificates.pair("friend", names: []),
                    expired: @certificates.pair("expired", names: [], days: -9..-2),
                    stranger: Certificates.new(elsewhere).pair("stranger", names: []),
                    wrong_purpose: @certificates.pair("wrong_purpose", names: [], usage: "serverAuth"),
                    revoked: @certificates.pair("revoked", names: []) }
  end

  def rsa
    @rsa ||= OpenSSL::PKey::RSA.new(2048)
  end

  def query(name)
    ca = "ca=#{@certificates.authority}"
    case name
    when :several, :hasty_several then "#{@server.query}&#{@certificates.pair("other", names: %w[DNS:other.test DNS:*.wild.test]).query}"
    when :both then "#{@server.query}&#{@certificates.pair("rsa", key: rsa).query}"
    when :peer, :force_peer then "#{@server.query}&#{ca}&verify_mode=#{name}"
    when :revoking
      list = @certificates.revocations(@identities.fetch(:revoked))
      "#{@server.query}&ca=#{list}&verify_mode=force_peer&verification_flags=CRL_CHECK"
    when :filtered then "#{@server.query}&ssl_cipher_filter=ECDHE-ECDSA-AES256-GCM-SHA384"
    else @server.query
    end
  end

  def server(name)
    @servers[name] ||= ServerProcess.new(
      File.join(@folder, "config.ru"), settings: name.start_with?("hasty") ? { head_timeout_ms: 300 } : {},
                                       binds: [name == :plain ? "tcp://127.0.0.1:0" : "ssl://127.0.0.1:0?#{query(name)}"]
    )
  end

  # The server logs a few failed handshakes a second, so some attempts leave no line.
  def logged(rule)
    from = server(rule.server).log.bytesize
    60.times do
      attempt(rule, nil, nil)
      server(rule.server).wait_for_log(rule.expected[:log], from: from, deadline: 0.5)
      return []
    rescue ServerProcess::Failure
      next
    end
    ["#{rule.id} #{rule.title}: no #{rule.expected[:log].inspect} in the log"]
  end

  # ---- one attempt ----

  def attempt(rule, segment, record)
    segment = 100 if segment && rule.sent.bytesize > LONG
    segments = segment && Segments.new(server(rule.server).port, segment)
    socket = segments ? segments.socket : TCPSocket.new("127.0.0.1", server(rule.server).port)
    Timeout.timeout(PATIENCE) { rule.client[:raw] ? say_raw(rule, socket) : say(rule, socket, record) }
  ensure
    socket&.close
    segments&.finish
  end

  def say_raw(rule, socket)
    socket.write(rule.sent)
    { bytes: socket.read.to_s.b }
  rescue SystemCallError
    { bytes: "".b }
  end

  def context(client)
    OpenSSL::SSL::SSLContext.new.tap do |made|
      made.security_level = 0 if client[:max] == :TLS1_1
      made.min_version = OpenSSL::SSL.const_get("#{client[:min] || (client[:max] == :TLS1_1 ? :TLS1 : :TLS1_2)}_VERSION")
      made.max_version = OpenSSL::SSL.const_get("#{client[:max]}_VERSION") if client[:max]
      made.ciphers = client[:ciphers] if client[:ciphers]
      made.ecdh_curves = client[:groups] if client[:groups]
      made.alpn_protocols = client[:alpn] if client[:alpn]
      identify(made, @identities.fetch(client[:identity])) if client[:identity]
    end
  end

  def identify(made, pair)
    made.cert = OpenSSL::X509::Certificate.new(File.read(pair.certificate))
    made.key = OpenSSL::PKey.read(File.read(pair.key))
  end

  def say(rule, socket, record)
    client = OpenSSL::SSL::SSLSocket.new(socket, context(rule.client))
    host = rule.client.fetch(:host, "localhost")
    client.hostname = host if host
    client.connect
    found = { shown: client.peer_cert.subject.to_s.delete_prefix("/CN="), agreed: client.alpn_protocol, cipher: client.cipher[0] }
    write(client, rule.sent, record)
    socket.close_write if rule.half_close
    found.merge(hear(client))
  rescue OpenSSL::SSL::SSLError => e
    { alert: e.message }
  rescue SystemCallError, EOFError => e
    { alert: e.message, cut: true }
  end

  def write(client, text, record)
    record = 100 if record && text.bytesize > LONG
    record ? text.scan(/.{1,#{record}}/mn) { |piece| client.syswrite(piece) } : client.write(text)
  end

  # Everything up to the end, which has close_notify or has not.
  def hear(client)
    text = +"".b
    loop { text << client.sysread(65_536) }
  rescue EOFError
    { text: text, cut: false }
  rescue OpenSSL::SSL::SSLError, SystemCallError => e
    { text: text, cut: true, alert: e.message }
  end

  # ---- judging ----

  def compare(rule, found)
    rule.expected.each do |name, value|
      wrong = judge(name, value, found)
      return "#{name}: #{wrong} in #{found.inspect[0, 400]}" if wrong
    end
    nil
  end

  def judge(name, value, found)
    case name
    when :bodies then bodies(found[:text]) != value || found[:cut] ? "not #{value}" : nil
    when :cut then found[:cut] == value && bodies(found[:text]).empty? ? nil : "not cut"
    when :alert then value.match?(found[:alert].to_s) ? nil : "not #{value.inspect}"
    when :status then found[:bytes].start_with?("HTTP/1.1 #{value} ") ? nil : "not #{value}"
    when :nothing then found[:bytes].empty? || found[:bytes].start_with?("\x15\x03".b) ? nil : "an answer"
    when :records then found[:bytes].match?(/\A(?:[\x15\x16]\x03.*)?\z/mn) ? nil : "no records"
    when :log then nil
    else found[name] == value ? nil : "not #{value.inspect}"
    end
  end

  # The bodies of whole answers.
  def bodies(text)
    text.to_s.split("HTTP/1.1 ").drop(1).filter_map do |answer|
      head, body = answer.split("\r\n\r\n", 2)
      body if head.start_with?("200") && body&.bytesize == head[/content-length: (\d+)/i, 1].to_i
    end
  end
end
