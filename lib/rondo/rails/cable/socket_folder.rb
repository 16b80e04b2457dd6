# frozen_string_literal: true

# The folder in which each process that serves has a Unix socket, by which consoles and jobs on the same machine
# broadcast. Everybody who broadcasts takes any of the sockets, so none of them needs an owner who would have to leave
# it to the next one, and a phased restart needs no care.
# SPDX-License-Identifier: MIT

require "securerandom"

module Rondo
  module Rails
    module Cable
      # Paths of the sockets, and whom they belong to.
      class SocketFolder
        # Bytes of the address of a Unix socket (unix(7)).
        MOST_BYTES = 107
        # Its process, when that was started, by the kernel's clock, and something random.
        NAME = /\A(\d+)-(?:(\d+)-)?\h+\.sock\z/
        # Where Linux has the open descriptors of a process, by number.
        OPEN = "/proc/self/fd"
        private_constant :MOST_BYTES, :NAME, :OPEN

        # @return [String]
        attr_reader :path

        # @param config [Hash] of config/cable.yml
        # @raise [ConfigurationError] one line
        def initialize(config)
          folder = config["socket_folder"] || config[:socket_folder] || "tmp/rondo-cable"
          @path = File.expand_path(folder, defined?(::Rails.root) ? ::Rails.root.to_s : Dir.pwd)
          return if fits?(new_socket) || File.directory?(OPEN)

          raise ConfigurationError, "socket_folder in config/cable.yml: #{@path} is too long for the path of a socket"
        end

        # The folder may be deeper than an address of a Unix socket is long. Linux lets a process name it by a
        # descriptor.
        # @param socket [String] path of a socket in the folder
        # @yieldparam address [String] a path of it, as long as the block runs
        # @return [Object] what the block returns
        # @raise [SystemCallError]
        def reach(socket)
          return yield(socket) if fits?(socket)

          File.open(@path) { |folder| yield "#{OPEN}/#{folder.fileno}/#{File.basename(socket)}" }
        end

        # @return [Array<String>] paths of sockets; some may be of processes that were killed
        def sockets
          Dir.children(@path).grep(NAME).map { |name| File.join(@path, name) }
        rescue Errno::ENOENT
          []
        end

        # @return [String] a path for this process
        def new_socket
          File.join(@path, "#{Process.pid}-#{start_of(Process.pid)}-#{SecureRandom.hex(4)}.sock")
        end

        # Whoever owns the folder gets what is broadcast.
        # @param owned [Boolean] whether this user must own it, and not only keep others out
        # @return [Boolean]
        # @raise [SystemCallError]
        def private?(owned: true)
          stat = File.stat(@path)
          (!owned || stat.owned?) && stat.mode.nobits?(0o077)
        end

        # @return [String] what is wrong with a folder that is not {#private?}
        def complaint
          "#{@path} must belong to this user, and to nobody else (mode 0700)"
        end

        # @param socket [String] path of a socket that refuses connections
        # @return [Boolean] whether its process has ended, also if another one has its number now; one that cannot be
        #   seen may be in another container
        def ended?(socket)
          pid, start = NAME.match(File.basename(socket)).captures.map(&:to_i)
          return true unless there?(pid)

          now = start_of(pid)
          start.positive? && now.positive? && start != now
        end

        # @param socket [String]
        # @return [void]
        def remove(socket)
          File.unlink(socket)
        rescue SystemCallError
          nil # another process was faster
        end

        private

        # @return [Boolean] whether a process has this number, whoever's it is
        def there?(pid)
          Process.kill(0, pid)
          true
        rescue Errno::ESRCH
          false
        rescue SystemCallError
          true
        end

        # A process that becomes another program keeps it.
        # @return [Integer] ticks since the system was started; 0: it does not say
        def start_of(pid)
          File.read("/proc/#{pid}/stat")[/.*\)(.*)/m, 1].split.fetch(19).to_i
        rescue SystemCallError
          0
        end

        def fits?(socket)
          socket.bytesize <= MOST_BYTES
        end
      end
    end
  end
end
