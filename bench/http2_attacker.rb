# frozen_string_literal: true

# The attacks on HTTP/2 of test/integration/http2/attacks.rb, in a process of their own. Used by attacks.rb.
# SPDX-License-Identifier: MIT

require_relative "attacker"
require_relative "../test/integration/http2/attacks"

module Bench
  # One kind of attack until the process is killed. Clients that flood come back when the server has thrown them out,
  # clients that stay begin anew after a while.
  class HTTP2Attacker < Attacker
    SIZE = 1000
    STAY_SECONDS = 1

    # @yield when the first clients have begun
    def call(&begun)
      HTTP2Attacks::STAYING.include?(@kind) ? stay(&begun) : flood(&begun)
    end

    private

    def flood
      text = HTTP2Attacks.flood(@kind)
      clients = Array.new(@count) { begin_flood(text) }.compact
      yield
      loop { clients = go_on_flooding(clients, text) }
    end

    def go_on_flooding(clients, text)
      ended, = IO.select(clients, nil, nil, 0.05)
      over = ended.to_a.select { |client| ended?(client) }
      over.each(&:close)
      clients -= over
      missing = (@count - clients.size).clamp(0, PER_SECOND / 20)
      sleep 0.05 if missing.positive?
      clients + Array.new(missing) { begin_flood(text) }.compact
    end

    def begin_flood(text)
      HTTP2Attacks::Client.new(@port).tap { |client| client.say_some(text) }
    rescue SystemCallError
      nil # the server refuses more
    end

    def ended?(client)
      loop { return false if client.hear_some == :wait_readable }
    rescue SystemCallError, EOFError
      true
    end

    def stay
      attacks = HTTP2Attacks.new(@port, SIZE)
      loop do
        attacks.public_send(@kind) do |clients|
          yield if block_given? && !@begun
          @begun = true
          sleep STAY_SECONDS
          clients.each(&:close)
        end
      rescue SystemCallError
        sleep STAY_SECONDS # the server refuses more
      end
    end
  end
end
