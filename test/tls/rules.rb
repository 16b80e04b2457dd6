# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The rules of TLS as data: what a client is, what it sends, and what comes of it. This knows nothing of sockets;
# rules_runner.rb delivers it. Rules of records that no library sends are in test/core/tls/test_tls_hostile.c.

module TLSRules
  # server: one of rules_runner.rb
  # client: max, min (versions), ciphers, groups, alpn, host, identity (one of the certificates there), plain, raw
  # sent: plain text; or for raw clients the bytes themselves
  # expected: bodies (of the answers), cut (the answer ends without close_notify), alert, status (of a plain answer),
  #   shown (common name of the certificate), agreed (protocol), cipher, nothing (closed without a word), log
  Rule = Struct.new(:id, :title, :server, :client, :sent, :expected, :half_close)

  @rules = []
  class << self
    # @return [Array<Rule>]
    attr_reader :rules

    def rule(id, title, server: :usual, client: {}, sent: ONE, half_close: false, **expected)
      @rules << Rule.new("#{id}#{("a".."z").find { |x| @rules.none? { |r| r.id == "#{id}#{x}" } }}", title, server, client,
                         sent, expected, half_close)
    end

    # A ClientHello for TLS 1.2 by hand.
    # @param name [String] any bytes
    def hello(name)
      entry = [0, name.bytesize].pack("Cn") + name
      list = [entry.bytesize].pack("n") + entry
      extensions = [0, list.bytesize].pack("nn") + list + [10, 4, 2, 23, 13, 4, 2, 0x0403].pack("n*")
      body = [0x0303].pack("n") + ("r" * 32) + [0, 2, 0xc02b, 1, 0].pack("CnnCC") + [extensions.bytesize].pack("n") + extensions
      message = [1 << 24 | body.bytesize].pack("N") + body
      ["\x16\x03\x01".b, [message.bytesize].pack("n"), message].join
    end
  end

  LAST = "GET /name HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
  ONE = LAST
  TWO = "GET /name?1 HTTP/1.1\r\nhost: a\r\n\r\n#{LAST}".freeze
  BODY = "POST /size HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 10\r\n\r\n"
  HUGE = ["\x16\x03\x01\x40\x00\x01\x01\xff\x00".b, "x" * 16_380].join + (["\x16\x03\x01\x40\x00".b, "x" * 16_384].join * 4)

  # ---- T1: a handshake has its time and 64 KiB ----
  rule "T1", "nothing comes", server: :hasty, client: { raw: true }, sent: "", nothing: true
  rule "T1", "half a ClientHello", server: :hasty, client: { raw: true }, sent: hello("a").byteslice(0, 40), nothing: true
  rule "T1", "a whole one, and no more", server: :hasty, client: { raw: true }, sent: hello("a"), records: true
  rule "T1", "a ClientHello without an end", client: { raw: true }, sent: HUGE, nothing: true, log: /TLS handshake is too long/

  # ---- T2: versions and ciphers ----
  rule "T2", "TLS 1.2", client: { max: :TLS1_2 }, bodies: ["https"]
  rule "T2", "TLS 1.3", client: { min: :TLS1_3 }, bodies: ["https"]
  rule "T2", "TLS 1.1", client: { max: :TLS1_1, ciphers: "ALL:@SECLEVEL=0" }, alert: /protocol version/,
                        log: /no common version of TLS/
  rule "T2", "CBC", client: { max: :TLS1_2, ciphers: "ECDHE-ECDSA-AES128-SHA" }, alert: /handshake failure/,
                    log: /no common cipher/
  rule "T2", "a key exchange without forward secrecy", client: { max: :TLS1_2, ciphers: "AES128-GCM-SHA256" },
                                                       alert: /handshake failure/
  rule "T2", "a finite field, which costs the server much", client: { min: :TLS1_3, groups: "ffdhe2048:ffdhe8192" },
                                                            alert: /handshake failure/
  rule "T2", "AES-128 first", client: { max: :TLS1_2, ciphers: "ECDHE+AES256:ECDHE+AES128" }, bodies: ["https"],
                              cipher: "ECDHE-ECDSA-AES128-GCM-SHA256"
  rule "T2", "ChaCha for those that prefer it", client: { max: :TLS1_2, ciphers: "ECDHE+CHACHA20:ECDHE+AES128" },
                                                bodies: ["https"], cipher: "ECDHE-ECDSA-CHACHA20-POLY1305"

  # ---- T3: ALPN ----
  rule "T3", "ours among others", client: { alpn: %w[h9 http/1.1] }, bodies: ["https"], agreed: "http/1.1"
  rule "T3", "none of ours", client: { alpn: %w[h9 spdy/1] }, alert: /no application protocol/, log: /no common protocol/
  rule "T3", "none at all", bodies: ["https"], agreed: nil

  # ---- T4: plain HTTP here, TLS there ----
  rule "T4", "plain HTTP", client: { raw: true }, sent: LAST, status: 400, log: %r{plain HTTP on a port for TLS}
  rule "T4", "TLS on a plain port", server: :plain, client: { raw: true }, sent: hello("a"), status: 400
  rule "T4", "garbage", client: { raw: true }, sent: "\x00\x01\x02\x03\x04\x05".b, nothing: true, records: true
  rule "T4", "a record that is none", client: { raw: true }, sent: "\x16\x03\x01\xff\xff#{"x" * 30}".b, records: true
  rule "T4", "an alert", client: { raw: true }, sent: "\x15\x03\x01\x00\x02\x02\x28".b, nothing: true, records: true

  # ---- T5: certificates by name ----
  rule "T5", "exactly", server: :several, client: { host: "other.test" }, bodies: ["https"], shown: "other"
  rule "T5", "in capitals", server: :several, client: { host: "OTHER.test" }, bodies: ["https"], shown: "other"
  rule "T5", "by a wildcard", server: :several, client: { host: "x.wild.test" }, bodies: ["https"], shown: "other"
  rule "T5", "a wildcard is one label", server: :several, client: { host: "x.y.wild.test" }, bodies: ["https"], shown: "server"
  rule "T5", "not below the wildcard", server: :several, client: { host: "wild.test" }, bodies: ["https"], shown: "server"
  rule "T5", "unknown", server: :several, client: { host: "unknown.test" }, bodies: ["https"], shown: "server"
  rule "T5", "none", server: :several, client: { host: nil }, bodies: ["https"], shown: "server"
  rule "T5", "an address", server: :several, client: { host: "127.0.0.1" }, bodies: ["https"], shown: "server"
  rule "T5", "a dot at the end", server: :several, client: { host: "other.test." }, bodies: ["https"], shown: "server"
  ["a\0b.test", "\0", "x" * 255, "x" * 256, "x" * 5000, "", "*.wild.test", ".", "\xff\xfe"].each do |name|
    rule "T5", "#{name.bytesize} bytes", server: :hasty_several, client: { raw: true }, sent: hello(name.b), records: true
  end

  # ---- T6: two kinds of keys for one name ----
  rule "T6", "RSA", server: :both, client: { max: :TLS1_2, ciphers: "aRSA+ECDHE" }, bodies: ["https"], shown: "rsa"
  rule "T6", "ECDSA", server: :both, client: { max: :TLS1_2, ciphers: "aECDSA+ECDHE" }, bodies: ["https"], shown: "server"
  rule "T6", "whatever is better", server: :both, bodies: ["https"], shown: "server"

  # ---- T8: certificates of clients ----
  [{ max: :TLS1_2 }, { min: :TLS1_3 }].each do |version|
    rule "T8", "not asked for", client: { identity: :friend, **version }, bodies: ["https"]
    rule "T8", "none is right", server: :peer, client: version, bodies: ["https"]
    rule "T8", "a valid one", server: :peer, client: { identity: :friend, **version }, bodies: ["https"]
    rule "T8", "none is wrong", server: :force_peer, client: version, alert: /certificate required|handshake failure/,
                                log: /client without a certificate/
    rule "T8", "a valid one", server: :force_peer, client: { identity: :friend, **version }, bodies: ["https"]
    { expired: /expired/, stranger: /unknown ca|decrypt error/, wrong_purpose: /unsupported certificate|bad certificate/ }.each do |who, alert|
      %i[peer force_peer].each do |server|
        rule "T8", who.to_s, server: server, client: { identity: who, **version }, alert: alert,
                             log: /certificate of the client is not valid/
      end
    end
    rule "T8", "a revoked one", server: :revoking, client: { identity: :revoked, **version }, alert: /certificate revoked/,
                                log: /certificate of the client is not valid \(certificate revoked\)/
    rule "T8", "one that is not on the list", server: :revoking, client: { identity: :friend, **version }, bodies: ["https"]
  end

  # ---- T10, T11: the end ----
  rule "T10", "an orderly one", bodies: ["https"]
  rule "T10", "an answer that is cut, and only its end would tell", sent: "GET /cut HTTP/1.0\r\n\r\n", cut: true
  rule "T10", "an answer that is cut, with a length", sent: "GET /short HTTP/1.1\r\nhost: a\r\n\r\n", cut: true
  rule "T10", "an answer that is cut, in chunks", sent: "GET /cut HTTP/1.1\r\nhost: a\r\n\r\n", cut: true
  rule "T11", "an end without close_notify, behind a request", half_close: true, bodies: ["https"]
  rule "T11", "an end within a body", sent: "#{BODY}01234", half_close: true, bodies: []
  rule "T11", "an end behind a body", sent: "#{BODY}0123456789", half_close: true, bodies: ["10"]

  # ---- T12: records and requests ----
  rule "T12", "two requests", sent: TWO, bodies: %w[https https]
  rule "T12", "a body", sent: "#{BODY}0123456789", bodies: ["10"]
  rule "T12", "a body of many records", sent: BODY.sub("10", "40000") + ("x" * 40_000), bodies: ["40000"]

  # ---- T13: other ciphers if somebody wants them ----
  rule "T13", "a filter", server: :filtered, client: { max: :TLS1_2 }, bodies: ["https"], cipher: "ECDHE-ECDSA-AES256-GCM-SHA384"
end
