# frozen_string_literal: true

# Listening sockets from outside: systemd's (LISTEN_FDS, sd_listen_fds(3)) and those of the process
# that this one replaced by exec. Also systemd's notifications (sd_notify(3)).
# SPDX-License-Identifier: MIT

require "socket"

module Rondo
  # Descriptors to adopt instead of binding.
  class Inherited
    VARIABLE = "RONDO_INHERITED"
    FIRST_SYSTEMD_FD = 3

    # What the environment offers; the variables are removed, so that children do not take it too.
    # @return [Inherited]
    def self.take(env = ENV)
      new(from_predecessor(env).merge(from_systemd(env)))
    end

    # @param descriptors [Hash{String => Integer}] by URL
    # @return [Hash{String => IO}] duplicates that stay open across exec
    def self.hand_on(descriptors)
      descriptors.transform_values do |descriptor|
        copy = IO.for_fd(descriptor, autoclose: false).dup
        copy.close_on_exec = false
        copy
      end
    end

    # Replaces this process by a new one with the same command line.
    # @param ios [Hash{String => IO}]
    def self.exec_again(ios)
      list = ios.map { |url, io| "#{io.fileno}=#{url}" }.join(",")
      keep = ios.values.to_h { |io| [io.fileno, io.fileno] }
      exec({ VARIABLE => list }, *command_line, keep)
    end

    # @param state [String] READY=1, STOPPING=1, …
    # @return [void]
    def self.notify(state, env = ENV)
      path = env["NOTIFY_SOCKET"]
      return if path.to_s.empty? || env["PUMA_SKIP_SYSTEMD"]

      socket = Socket.new(:UNIX, :DGRAM)
      socket.connect(Addrinfo.unix(path.sub(/\A@/, "\0")))
      socket.send(state, 0)
    rescue SystemCallError
      nil # nobody listens: nothing to tell
    ensure
      socket&.close
    end

    def self.from_predecessor(env)
      env.delete(VARIABLE).to_s.split(",").to_h do |entry|
        number, url = entry.split("=", 2)
        [url.sub(/\Ahttps?:/, "tcp:"), Integer(number, 10)]
      end
    end
    private_class_method :from_predecessor

    def self.from_systemd(env)
      count = env["LISTEN_PID"].to_i == Process.pid ? env["LISTEN_FDS"].to_i : 0
      %w[LISTEN_PID LISTEN_FDS LISTEN_FDNAMES].each { |name| env.delete(name) } if count.positive?
      Array.new(count) { |index| FIRST_SYSTEMD_FD + index }.to_h { |number| [uri_of(number), number] }
    end
    private_class_method :from_systemd

    def self.uri_of(descriptor)
      address = IO.for_fd(descriptor, autoclose: false).then do |io|
        BasicSocket.for_fd(io.fileno).tap { |socket| socket.autoclose = false }.local_address
      end
      return "unix://#{address.unix_path.sub(/\A\0/, "@")}" if address.unix?

      Address.tcp_uri(address.ip_address, address.ip_port)
    rescue SystemCallError
      raise AddressError, "descriptor #{descriptor} of LISTEN_FDS is not a listening socket"
    end
    private_class_method :uri_of

    # The same words that started this process, from the system: ARGV may have been changed.
    def self.command_line
      words = File.read("/proc/self/cmdline").split("\0")
      return [words.first, *words.drop(1)] if words.size > 1

      [RbConfig.ruby, $PROGRAM_NAME, *ARGV]
    rescue SystemCallError
      [RbConfig.ruby, $PROGRAM_NAME, *ARGV]
    end
    private_class_method :command_line

    # @param descriptors [Hash{String => Integer}] by URI
    def initialize(descriptors)
      @descriptors = descriptors
      @used = []
    end

    # @return [Boolean]
    def any?
      @descriptors.any?
    end

    # @return [Array<String>]
    def uris
      @descriptors.keys
    end

    # @param uri [String]
    # @return [Integer, nil]
    def descriptor_for(uri)
      plain = uri.split("?").first
      found = @descriptors[plain] || @descriptors.find { |known, _| same_place?(known, plain) }&.last
      @used << found if found
      found
    end

    # Closes what nothing asked for, so that no queue fills up unseen.
    # @return [void]
    def close_rest
      (@descriptors.values - @used).each { |number| IO.for_fd(number).close }
    end

    private

    # Port 0 was asked for, and the predecessor has got a real one for it.
    def same_place?(known, wanted)
      wanted.end_with?(":0") && known.start_with?(wanted.delete_suffix("0")) &&
        !@used.include?(@descriptors[known])
    end
  end
end
