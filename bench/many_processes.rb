# frozen_string_literal: true

# How the servers start with several processes that serve. Used by servers.rb.
# SPDX-License-Identifier: MIT

module Bench
  # From the command for one process to the one for several.
  module ManyProcesses
    KNOWN = %w[rondo node uws bare up iodine falcon itsi puma].freeze

    module_function

    # @return [Boolean]
    def knows?(name)
      KNOWN.include?(name)
    end

    # @param command [Array<String>] of the server with one process
    # @return [Array<String>]
    def command(name, command, app, port, count)
      case name
      when "node", "uws" then command.dup.insert(-2, "-w", count.to_s)
      when "bare" then [*command, count.to_s]
      when "up" then [*command[0..-2], count.to_s]
      when "falcon" then Servers.with_workers(name, command, ["-n", count.to_s], app, port)
      when "itsi" then Servers.with_workers(name, command, [count.to_s, "1"], app, port)
      when "puma" then Servers.with_workers(name, command, ["-w", count.to_s, "-t", "1:1", "-q"], app, port)
      else Servers.with_workers(name, command, ["-w", count.to_s, "-t", "1"], app, port)
      end
    end
  end
end
