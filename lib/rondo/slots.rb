# frozen_string_literal: true

# What belongs to a place in the cluster and not to the process that is there at the time: its
# listening sockets, and the box in which connections arrive that siblings hand over. A worker that
# dies leaves its queues to the next one. Kept by the master; workers get copies when they are forked.
# SPDX-License-Identifier: MIT

require "rondo"
require "socket"

module Rondo
  # Sockets of all slots.
  class Slots
    # @!attribute url [String]
    # @!attribute uri [String] what was asked for, with its options
    # @!attribute shared [Boolean] one socket for all slots
    # @!attribute foreign [Boolean] somebody else opened it and keeps its file
    # @!attribute ios [Array<IO>] by slot; only the first where it is shared
    Address = Struct.new(:url, :uri, :shared, :foreign, :ios, keyword_init: true)

    NOBODY = ->(_env) { [503, {}, []] }

    # @param settings [Settings::Resolved]
    # @param log [Logger]
    # @param room [Integer] slots there may ever be
    def initialize(settings, log, room:)
      @options = settings.core
      @log = log
      @room = room
      @addresses = []
      @inboxes = Array.new(room) { UNIXSocket.pair(:SEQPACKET) }
    end

    # @return [Integer] slots there may ever be
    attr_reader :room

    # Takes over what was inherited for an address, or opens it.
    # @param uri [String]
    # @param inherited [Inherited]
    # @param count [Integer] of slots
    # @return [void]
    # @raise [AddressError] one line
    def listen(uri, inherited, count)
      found = inherited_groups(uri, inherited)
      found = open_new(uri) if found.empty?
      @addresses.concat(found)
      grow(count)
    end

    # Opens what slots up to `count` have not got yet.
    # @return [void]
    # @raise [AddressError]
    def grow(count)
      @addresses.reject(&:shared).each do |address|
        (0...count).each { |index| address.ios[index] ||= open_another(address) }
      end
    end

    # Closes what belongs to one slot alone.
    # @return [void]
    def close(index)
      @addresses.reject(&:shared).each do |address|
        address.ios[index]&.close
        address.ios[index] = nil
      end
    end

    # @return [Array<String>] URLs
    def urls
      @addresses.map(&:url).uniq
    end

    # @return [Array<IO>] what a worker of the slot listens on
    def listeners(index)
      @addresses.map { |address| address.shared ? address.ios.first : address.ios[index] }.compact
    end

    # @return [Hash{String => Integer}] descriptors of a slot by URL, nil for the shared ones
    def descriptors(index)
      own = @addresses.select { |address| index ? !address.shared : address.shared }
      own.to_h { |address| [address.url, address.ios[index || 0]&.fileno] }.compact
    end

    # @return [IO] where a worker of the slot finds connections of its siblings
    def inbox(index)
      @inboxes[index].first
    end

    # @return [Array<IO>] where siblings put them, by slot
    def outboxes
      @inboxes.map(&:last)
    end

    # @return [Array<Array(String, IO)>] everything with its URL, for the process that goes on
    def all
      @addresses.flat_map { |address| address.ios.compact.map { |io| [address.url, io] } }
    end

    # @return [Array<String>] URLs of those that somebody else opened
    def foreign
      @addresses.select(&:foreign).map(&:url)
    end

    # Ends accepting: what is queued is left to the workers, which still have their copies.
    # @return [void]
    def close_all
      @addresses.each do |address|
        address.shared && !address.foreign ? remove(address) : address.ios.compact.each(&:close)
      end
      @addresses.clear
    end

    private

    # One Address for each that the URI stands for.
    def inherited_groups(uri, inherited)
      inherited.descriptors_for(uri).map do |number|
        own = inherited.own?(number)
        ios = [number, *inherited.siblings_of(number)].map { |each| IO.for_fd(each) }
        ios.each { |io| io.close_on_exec = true }
        url = url_of(number)
        Address.new(url: url, uri: uri, shared: !own || url.start_with?("unix:"), foreign: !own, ios: ios)
      end
    end

    def url_of(number)
      copy = IO.for_fd(number, autoclose: false).dup
      copy.autoclose = false
      server = opener
      server.listen_fd(copy.fileno)
    ensure
      end_server(server)
    end

    # The first one is bound without SO_REUSEPORT: it would share a port with a stranger's servers.
    def open_new(uri)
      probe = opener
      probe.listen(uri)
      return [keep(probe, uri, shared: true)] if uri.start_with?("unix:")

      open_to_siblings(probe)
      probe.descriptors.keys.map do |url|
        address = Address.new(url: url, uri: uri, shared: false, foreign: false, ios: [])
        address.ios << open_another(address)
        address
      end
    ensure
      end_server(probe) if probe
    end

    def open_to_siblings(server)
      server.descriptors.each_value do |number|
        socket = Socket.for_fd(number)
        socket.autoclose = false
        socket.setsockopt(:SOCKET, :REUSEPORT, true)
      end
    end

    def open_another(address)
      server = opener
      options = address.uri[/\?(.*)/, 1].to_s.split("&").reject { |pair| pair.start_with?("reuse_port") }
      server.listen("#{address.url.sub(/\Ahttps?:/, "tcp:")}?#{[*options, "reuse_port=true"].join("&")}")
      keep(server, address.uri, shared: false).ios.first
    ensure
      end_server(server) if server
    end

    def opener
      Server.new(NOBODY, **@options, log: @log)
    end

    def keep(server, uri, shared:)
      url, number = server.descriptors.first
      io = IO.for_fd(number, autoclose: false).dup
      server.keep_files
      Address.new(url: url, uri: uri, shared: shared, foreign: false, ios: [io])
    end

    # Closes the server's own descriptors; a socket of which there is a copy goes on.
    def end_server(server)
      server.stop(force: true)
      server.run unless server.addresses.empty?
    end

    # The file of a Unix socket, too.
    def remove(address)
      server = opener
      server.listen_fd(address.ios.first.fileno, owns_file: true)
      address.ios.first.autoclose = false
      end_server(server)
    end
  end
end
