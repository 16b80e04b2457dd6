# frozen_string_literal: true

# A client in C that gets its commands line by line, so that the server can be examined between two lines. Used by
# push.rb and files.rb.
# SPDX-License-Identifier: MIT

require "json"
require_relative "programs"
require_relative "servers"

module Bench
  # The client printed nothing: the server accepted no connection, or did not answer.
  class Silent < StandardError; end

  # One run of such a client. The subclasses below name the program.
  class Dialogue
    # @param port [Integer] of the server
    # @param options [Array<String>] for the client
    # @yieldparam client [Dialogue] until the block ends; then its connections are reset
    def self.run(port, *options)
      program = self::PROGRAM
      IO.popen([Programs.path(program), "--pin", CLIENT_CPU.to_s, *options, port.to_s], "r+") { |io| yield new(io) }
    end

    def initialize(io)
      @io = io
    end

    # @param words [Array] a command, see the client's usage
    # @return [Hash{Symbol => Object}] what it counted
    # @raise [Silent]
    def tell(*words)
      @io.puts(words.join(" "))
      said = @io.gets || raise(Silent, "the client gave up at: #{words.join(" ")}")
      JSON.parse(said, symbolize_names: true)
    rescue Errno::EPIPE
      raise Silent, "the client is gone"
    end
  end
end
