# frozen_string_literal: true

# Listening sockets for other processes: opened by the core, with its options and its errors, and then
# kept here as a plain IO. Nothing is ever accepted in this process.
# SPDX-License-Identifier: MIT

require "rondo"

module Rondo
  # Opens sockets without serving them.
  # @api private
  class ListenerOpener
    # @!attribute io [IO] closed by exec
    # @!attribute url [String]
    # @!attribute port [Integer] 0 for Unix sockets
    Opened = Struct.new(:io, :url, :port)
    NOBODY = ->(_env) { [503, {}, []] }

    # @param settings [Hash{Symbol => Integer}] of the core
    def initialize(settings)
      @settings = settings
    end

    # @param address [Hash] of {Address.parse}
    # @return [Opened]
    # @raise [AddressError] one line
    def open(address)
      with_core do |core|
        opened = core.listen(address)
        io = IO.for_fd(opened[:fd], autoclose: false).dup
        core.keep_files
        Opened.new(io, opened[:url], opened[:port])
      end
    rescue AddressError => e
      raise PortHolder.explain(e, address[:port])
    end

    # @param io [IO] a listening socket that was inherited
    # @param tls [TLS::Material] for its connections
    # @return [void]
    # @raise [AddressError] one line: they cannot have it
    def check(io, tls)
      copy = io.dup
      copy.autoclose = false
      with_core { |core| core.listen({ kind: :fd, fd: copy.fileno, scheme: "https", tls: tls }) }
    end

    # Removes the file of a Unix socket that was opened here or in an earlier life.
    # @param io [IO]
    # @return [void]
    def remove_file(io)
      copy = io.dup
      with_core do |core|
        core.listen({ kind: :fd, fd: copy.fileno, owns_file: true })
        copy.autoclose = false # the core closes it
      end
    end

    private

    def with_core
      core = Server::Core.new(NOBODY, @settings, {})
      yield core
    ensure
      core&.close_listeners
    end
  end
end
