# frozen_string_literal: true

# The attacks on HTTP/2 of test/integration/http2/attacks.rb, in a process of their own. Used by attacks.rb.
# SPDX-License-Identifier: MIT

require_relative "attacker"
require_relative "../test/integration/http2/attacks"

module Bench
  # One kind of attack until the process is killed. Clients that flood come back when the server has thrown them out.
  # Of the clients that stay, as many as that leave and come back.
  class HTTP2Attacker < Attacker
    # @yield when the first clients have begun
    def call(&begun)
      HTTP2Attacks::STAYING.key?(@kind) ? stay(&begun) : flood(&begun)
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

    # Each of them comes back when it has stayed as long as all of them together need to come back.
    def stay
      clients = Array.new(@count) { begin_staying }
      yield
      loop do
        sleep 0.05
        clients.shift(PER_SECOND / 20).each { |client| client&.close }
        clients.push(*Array.new(@count - clients.size) { begin_staying })
      end
    end

    def begin_staying
      HTTP2Attacks.begin_one(@kind, @port)
    rescue SystemCallError
      nil # the server refuses more
    end
  end
end
