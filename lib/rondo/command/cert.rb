# frozen_string_literal: true

# `rondo cert`: the certificates that the server makes or fetches by itself. It takes the server's options, because
# these say which certificates there are.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/certificates/development"
require "rondo/certificates/domains"
require "rondo/certificates/door"
require "rondo/certificates/renewal"
require "rondo/certificates/trust"

module Rondo
  # Carries out a verb behind `cert`.
  # @api private
  class Cert
    VERBS = { "renew" => "fetch the certificates of tls_domain that are due now, without the delay after a failure",
              "status" => "show these certificates; exit code 1 if one of them is missing or has expired",
              "trust" => "let this machine trust the authority that signs certificates in development" }.freeze

    # @return [String]
    def self.help
      rows = VERBS.map { |verb, words| format("  %-8<verb>s %<words>s\n", verb: verb, words: words) }
      "Usage: rondo cert VERB [options of the server]\n\n#{rows.join}\n  " \
        "--force    renew: also what is not due\n"
    end

    # @param word [String]
    # @return [String]
    # @raise [Error] one line
    def self.verb(word)
      return word if VERBS.key?(word)

      raise Error, "rondo cert cannot #{word}#{Server.nearest(word, VERBS.keys)}; use one of #{VERBS.keys.join(", ")}"
    end

    # @param verb [String] of {VERBS}
    # @param settings [Settings::Resolved]
    # @param out [IO]
    def initialize(verb, settings, out: $stdout)
      @verb = verb
      @settings = settings
      @out = out
    end

    # @param force [Boolean] renew: also what is not due
    # @param print [Boolean] trust: only say what there is to do
    # @return [Integer] exit code
    # @raise [Error] one line
    def run(force: false, print: false)
      case @verb
      when "trust" then trust(print)
      when "renew" then renew(force)
      when "status" then status
      end
    end

    private

    def trust(print)
      development = Certificates::Development.new
      development.authority
      Certificates::Trust.new(development.own_authority, out: @out).run(print: print)
      0
    end

    def domains
      Certificates::Domains.from(@settings) or raise Error, "there is no tls_domain: use --tls-domain NAME"
    end

    # A server that runs answers on port 80 from the same folder; if none does, this program answers.
    def renew(force)
      wanted = domains
      door = Certificates::Door.try(wanted, @settings)
      renewal = Certificates::Renewal.new(wanted, ->(line, _good) { @out.puts Logger.escape(line) })
      renewal.run(wait: true, all: force, patient: false) ? 0 : 1
    ensure
      door&.close
    end

    def status
      wanted = domains
      store = Certificates::Store.new(wanted.storage)
      states = wanted.names.map { |name| store.state(name) }
      states.each { |state| @out.puts Logger.escape(line(state)) }
      states.all?(&:good?) ? 0 : 1
    end

    def line(state)
      parts = [certificate_words(state)]
      parts << "tried #{state.failures} times in vain: #{state.error}" if state.failures.positive?
      parts << "next try at #{time(state.next_try)}" if state.next_try
      "#{state.name}: #{parts.join("; ")}"
    end

    def certificate_words(state)
      return "no certificate" unless state.certificate

      issuer = state.certificate.issuer.to_a.map { |_, value,| value }.join(", ")
      valid = state.good? ? "valid until" : "not valid; its end:"
      "#{valid} #{time(state.certificate.not_after)}, renewed from #{time(state.renew_at)} on, by #{issuer}"
    end

    def time(moment)
      moment.utc.strftime("%F %R UTC")
    end
  end
end
