# frozen_string_literal: true

# Where the server listens, as plugins in a mold see it. The sockets are the master's: a copy in the mold would keep a
# socket open that the master closes for good, and clients would wait in its queue for nobody.
# SPDX-License-Identifier: MIT

require "socket"

module Rondo
  # Answers what a listening socket answers about its address.
  # @api private
  class BoundAddress
    # @param url [String] http://HOST:PORT, https://HOST:PORT or unix:///PATH
    def initialize(url)
      @url = url
    end

    # @return [Addrinfo]
    def local_address
      path ? Addrinfo.unix(path) : Addrinfo.tcp(*host_and_port)
    end

    # @return [Array] as `TCPServer#addr` or `UNIXServer#addr`
    def addr(*)
      return ["AF_UNIX", path] if path

      host, port = host_and_port
      [host.include?(":") ? "AF_INET6" : "AF_INET", port, host, host]
    end

    # @return [String, nil] of a Unix socket; one that begins with a zero byte is in the abstract namespace
    def path
      return unless @url.start_with?("unix:")

      @url.delete_prefix("unix://").sub(/\A@/, "\0")
    end

    # @return [String]
    def to_s
      @url
    end

    private

    def host_and_port
      host, port = @url[%r{//(.*)\z}, 1].split(/:(?=\d+\z)/)
      [host.delete("[]"), port.to_i]
    end
  end
end
