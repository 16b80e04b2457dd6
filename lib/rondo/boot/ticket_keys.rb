# frozen_string_literal: true

# The keys of session tickets from one program to the next, as a descriptor: their bytes are never in a file or in
# the environment. They themselves are in the core (ext/rondo/tls/ticket_keys.h).
# SPDX-License-Identifier: MIT

require "rondo"

module Rondo
  # Makes, takes over and hands on keys.
  # @api private
  module TicketKeys
    # Where the program before left its keys: the number of a descriptor.
    VARIABLE = "RONDO_TICKETS"

    module_function

    # To be called before there are children. A descriptor of another kind is not ours, and stays as it is.
    # @param env [Hash] the variable is removed
    # @return [TLS::Tickets, nil] the keys of the program before, or nil
    def extract(env = ENV)
      number = Integer(env.delete(VARIABLE) || return, 10)
      keys = TLS::Tickets.new(number)
      IO.for_fd(number).close
      keys
    rescue SystemCallError, ArgumentError, NameError
      nil # other clients would not notice, and those with tickets shake hands again
    end

    # @param urls [Array<String>] of listeners, or what binds them
    # @param before [TLS::Tickets, nil] of {.extract}
    # @return [TLS::Tickets, nil] nil where nothing is encrypted
    def for(urls, before)
      before || TLS::Tickets.new if TLS.library && urls.any? { |url| Address.scheme(url) == "https" }
    end

    # @param keys [TLS::Tickets, nil]
    # @return [Array(Hash{String => String}, Array<IO>)] the variable, and what has to stay open
    def hand_on(keys)
      return [{}, []] unless keys

      io = IO.for_fd(keys.fd, autoclose: false).dup
      io.close_on_exec = false
      [{ VARIABLE => io.fileno.to_s }, [io]]
    end
  end
end
