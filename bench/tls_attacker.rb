# frozen_string_literal: true

# The attacks on TLS of test/tls/attacks.rb, in a process of their own: the same one again and again. Used by
# attacks.rb.
# SPDX-License-Identifier: MIT

require_relative "attacker"
require_relative "../test/tls/attacks"

module Bench
  # One kind of attack until the process is killed.
  class TLSAttacker < Attacker
    SIZE = 1000
    STAY_SECONDS = 1 # how long clients hold what they hold
    PAUSE_SECONDS = 0.05
    # Attacks by one client each: as many of them go on side by side as there are clients.
    ALONE = %i[new_keys renegotiations records_of_one_byte small_fragments].freeze

    # @yield before the first one
    def call
      ::Attacks.program # compiled once
      yield
      Array.new(ALONE.include?(@kind) ? @count : 1) { Thread.new { attack_for_ever } }.each(&:join)
    end

    private

    def attack_for_ever
      attacks = ::Attacks.new(@port, SIZE)
      loop { attack_once(attacks) }
    end

    def attack_once(attacks)
      attacks.public_send(@kind) do |clients|
        sleep STAY_SECONDS if clients.any?
        clients.each(&:close)
      end
    rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
      sleep PAUSE_SECONDS # the server refuses more
    end
  end
end
