# frozen_string_literal: true

# Fetches the certificates that are due: the work of `rondo cert renew`, and of the process that a server starts for it
# (renewer.rb). One process at a time does it in a folder.
# SPDX-License-Identifier: MIT

require "rondo/certificates/domains"
require "rondo/certificates/order"
require "rondo/certificates/store"

module Rondo
  module Certificates
    # A round over all names.
    class Renewal
      # @param domains [Domains]
      # @param out [#call] gets lines for people, and whether each is good news
      def initialize(domains, out)
        @domains = domains
        @out = out
        @store = Store.new(domains.storage)
      end

      # @param wait [Boolean] until another process has finished
      # @param all [Boolean] also what is not due
      # @param patient [Boolean] whether the delays after failures count
      # @return [Boolean] whether all certificates are good afterwards
      # @raise [Failed] one line: nothing can be kept
      def run(wait: false, all: false, patient: true)
        done = @store.folder.locked(wait: wait) do
          renew_all(@domains.names.select { |name| wanted?(name, all, patient) })
          true
        end
        @out.call("another process is renewing in #{@domains.storage}", true) if done == :busy
        @domains.names.all? { |name| @store.state(name).good? }
      end

      private

      def wanted?(name, all, patient)
        state = @store.state(name)
        all || (patient ? state.due_at : state.renew_at || Time.at(0)) <= Time.now
      end

      # One account and its nonces for all names.
      def renew_all(names)
        return if names.empty?

        left = names.dup
        @store.check_room
        order = Order.new(@domains, @store)
        order.open
        names.each do |name|
          renew(name, order)
          left.shift
        end
      rescue Failed => e
        delay = left.map { |name| @store.failed(name, e.message, e.is_a?(Refused) ? e.retry_after : nil) }.min
        @out.call("no certificate for #{left.join(", ")}: #{e.message}; next try in #{delay} s", false)
      end

      def renew(name, order)
        certificate = order.fetch(name)
        @out.call("certificate for #{name} until #{certificate.not_after.utc.strftime("%F %R")} UTC", true)
        @store.state(name).renew_at > Time.now ? @store.succeeded(name) : calm_down(name)
      rescue Unreachable
        raise
      rescue Failed => e
        delay = @store.failed(name, e.message, e.is_a?(Refused) ? e.retry_after : nil)
        @out.call("no certificate for #{name}: #{e.message}; next try in #{delay} s", false)
      end

      # With a clock that is wrong, one order would follow the other, and authorities count them.
      def calm_down(name)
        error = "it is due for renewal at once: is the clock right?"
        delay = @store.failed(name, error)
        @out.call("certificate for #{name}: #{error} Next try in #{delay} s", false)
      end
    end
  end
end
