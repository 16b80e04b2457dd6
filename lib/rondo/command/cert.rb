# frozen_string_literal: true

# `rondo cert`: the certificates that the server makes or fetches by itself. It takes the server's options, because
# these say which certificates there are.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/certificates/development"
require "rondo/certificates/trust"

module Rondo
  # Carries out a verb behind `cert`.
  class Cert
    VERBS = { "trust" => "let this machine trust the authority that signs certificates in development" }.freeze

    # @return [String]
    def self.help
      rows = VERBS.map { |verb, words| format("  %-8<verb>s %<words>s\n", verb: verb, words: words) }
      "Usage: rondo cert VERB [options of the server]\n\n#{rows.join}\n  " \
        "--print    trust: only print the commands\n"
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

    # @param print [Boolean] trust: only say what there is to do
    # @return [Integer] exit code
    # @raise [Error] one line
    def run(print: false, **)
      trust(print)
      0
    end

    private

    def trust(print)
      development = Certificates::Development.new
      development.authority
      Certificates::Trust.new(development.own_authority, out: @out).run(print: print)
    end
  end
end
