# frozen_string_literal: true

# Finds the process that holds a port that is in use: Linux lists listening sockets with their inodes in /proc/net/tcp
# and tcp6, and the descriptors of each process with the inodes they lead to. Called by server.rb
# when an address is in use. It cannot see processes of other users.
# SPDX-License-Identifier: MIT

module Rondo
  # Looks for the process behind a listening TCP port.
  # @api private
  module PortHolder
    LISTEN = "0A" # the state, as the kernel writes it

    module_function

    # @param error [AddressError] of the core
    # @param port [Integer, nil]
    # @return [AddressError] which says more, where more can be said
    def explain(error, port)
      return error unless port

      if error.message.end_with?("in use")
        holder = find(port) and return AddressError.new("#{error.message} by #{holder}")
      elsif error.message.match?(/permission denied\z/i) && port < 1024
        return AddressError.new("#{error.message}: a port below 1024 needs the capability CAP_NET_BIND_SERVICE, " \
                                "or a socket from systemd")
      end
      error
    end

    # @param port [Integer]
    # @return [String, nil] "process 4711 (ruby)", nil when it cannot be seen
    def find(port, proc_folder: "/proc")
      inodes = inodes_of(port, proc_folder)
      pid = inodes.any? && pid_with(inodes, proc_folder) or return nil
      "process #{pid} (#{File.read("#{proc_folder}/#{pid}/comm").chomp})"
    rescue SystemCallError
      nil
    end

    def inodes_of(port, folder)
      suffix = format(":%04X", port)
      %w[tcp tcp6].flat_map do |table|
        File.readlines("#{folder}/net/#{table}").drop(1).map(&:split)
            .select { |fields| fields[1].end_with?(suffix) && fields[3] == LISTEN }
            .map { |fields| fields[9] }
      rescue SystemCallError
        []
      end
    end
    private_class_method :inodes_of

    def pid_with(inodes, folder)
      links = inodes.map { |inode| "socket:[#{inode}]" }
      pids = Dir.children(folder).grep(/\A\d+\z/)
      pids.find { |pid| links_of("#{folder}/#{pid}/fd").any? { |link| links.include?(link) } }
    end
    private_class_method :pid_with

    def links_of(folder)
      Dir.children(folder).filter_map { |name| File.readlink("#{folder}/#{name}") rescue nil }
    rescue SystemCallError
      [] # not ours to look at, or gone meanwhile
    end
    private_class_method :links_of
  end
end
