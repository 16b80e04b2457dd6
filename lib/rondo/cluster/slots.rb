# frozen_string_literal: true

# The parts of a slot that outlive its workers: its listening sockets, and the inbox for connections that siblings
# hand over. The queues of a worker that dies go to the next one.
# The master keeps them; workers get copies when they are forked.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/boot/inherited"
require "rondo/boot/listener_opener"
require "securerandom"
require "socket"

module Rondo
  # Sockets of all slots.
  # @api private
  class Slots
    # @!attribute url [String]
    # @!attribute uri [String] what was asked for, with its options
    # @!attribute tls [TLS::Material, nil] what its certificates and keys are, until the master ends
    # @!attribute shared [Boolean] one socket for all slots
    # @!attribute foreign [Boolean] another program opened it and keeps its file
    # @!attribute ios [Array<IO>] by slot; only the first where it is shared
    # @!attribute file [Array, nil] which file a Unix socket had at first
    Address = Struct.new(:url, :uri, :tls, :shared, :foreign, :ios, :file, keyword_init: true)

    # @param settings [Settings::Resolved]
    # @param room [Integer] slots there may ever be
    # @raise [Error] one line
    def initialize(settings, room:)
      @opener = ListenerOpener.new(settings.core)
      @room = room
      @addresses = []
      @inboxes = Array.new(room) { UNIXSocket.pair(:SEQPACKET) }
    rescue SystemCallError => e
      raise Error, "cannot open the sockets of #{room} workers: #{SystemCallError.new(nil, e.errno).message}"
    end

    # @return [Integer] slots there may ever be
    attr_reader :room
    # @return [String, nil] names what {#materials} has now: a worker that says another name has something else; nil
    #   where nothing is encrypted
    attr_reader :edition

    # Takes over what was inherited for an address, or opens it.
    # @param uri [String]
    # @param inherited [Inherited]
    # @param count [Integer] of slots
    # @yieldparam line [String] for the log
    # @return [void]
    # @raise [AddressError] one line
    def listen(uri, inherited, count, &note)
      tls = inherited.read_tls(uri, &note)
      found = inherited_groups(uri, inherited, tls)
      found = open_new(uri, tls) if found.empty?
      found.each { |address| address.file = file_of(address) }
      @addresses.concat(found)
      @edition ||= SecureRandom.hex(8) if tls
      grow(0...count)
    end

    # Opens the sockets that these slots lack, and no others: a socket without a worker would lose connections.
    # @param indexes [Enumerable<Integer>]
    # @return [void]
    # @raise [AddressError]
    def grow(indexes)
      @addresses.reject(&:shared).each do |address|
        indexes.each { |index| address.ios[index] ||= open_another(address) }
      end
    end

    # Closes the sockets that belong only to this slot.
    # @param index [Integer]
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

    # @param index [Integer]
    # @return [Array<IO>] what a worker of the slot listens on
    def listeners(index)
      @addresses.map { |address| address.shared ? address.ios.first : address.ios[index] }.compact
    end

    # @param index [Integer]
    # @return [Array<IO>] those that no other slot has
    def own_listeners(index)
      @addresses.reject(&:shared).filter_map { |address| address.ios[index] }
    end

    # @param ios [Array<IO>] some of {#listeners}
    # @return [String] what is spoken on each of them, in their order, for a message to a worker
    def schemes(ios)
      addresses_of(ios).map { |address| Rondo::Address.word(address.uri, address.url) }.join(" ")
    end

    # @param ios [Array<IO>] some of {#listeners}
    # @return [IO, nil] their certificates and keys, for a message to a worker; see {TLS.take}
    def secrets(ios)
      TLS.hand_on(addresses_of(ios).map(&:tls))
    end

    # Workers that are forked from now on get these.
    # @param materials [Array<TLS::Material>]
    # @return [void]
    def show_certificates(materials)
      @addresses.select(&:tls).each do |address|
        found = materials.find { |material| material[:name] == address.tls[:name] }
        address.tls = TLS.carry_over(found, address.tls) if found
      end
      @edition = SecureRandom.hex(8)
    end

    # @param index [Integer, nil] of a slot; nil: the sockets that all slots share
    # @return [Hash{String => Integer}] descriptors by URL
    def descriptors(index)
      own = @addresses.select { |address| index ? !address.shared : address.shared }
      own.to_h { |address| [address.url, address.ios[index || 0]&.fileno] }.compact
    end

    # Shows how many connections wait for all workers, and for each.
    # @param control [Control]
    # @return [void]
    def show_queues(control)
      control.unwatch
      control.watch(descriptors(nil))
      (0...@room).each { |index| control.watch(descriptors(index), worker: index) }
    end

    # @param index [Integer]
    # @return [IO] where a worker of the slot finds connections of its siblings
    def inbox(index)
      @inboxes[index].first
    end

    # @return [Array<IO>] where siblings put them, by slot
    def outboxes
      @inboxes.map(&:last)
    end

    # @return [Hash{String => Array<Hash>}] certificates by URL, without their keys
    def certificates
      @addresses.select(&:tls).to_h { |address| [address.url, TLS.shown(address.tls)] }
    end

    # @return [Array<Array(String, IO)>] all sockets with their URLs, for the next program; see {Address::APP}
    def all
      @addresses.flat_map { |address| address.ios.compact.map { |io| [marked(address), io] } }
    end

    # @return [Array<TLS::Material>] what is shown
    def materials
      @addresses.filter_map(&:tls).uniq { |material| material[:name] }
    end

    # @return [Array<String>] URLs of those that another program opened
    def foreign
      @addresses.select(&:foreign).map { |address| marked(address) }
    end

    # Stops accepting. Queued connections are left to the workers, which still have their copies of the sockets.
    # @return [void]
    def close_all
      @addresses.each do |address|
        # Another program may have put another socket in its place.
        own_file = address.shared && !address.foreign && address.file == file_of(address)
        @opener.remove_file(address.ios.first) if own_file
        address.ios.compact.each(&:close)
      end
      @addresses.clear
    end

    private

    def marked(address)
      "#{Rondo::Address::APP if Rondo::Address.app?(address.uri)}#{address.url}"
    end

    def addresses_of(ios)
      ios.map { |io| @addresses.find { |address| address.ios.include?(io) } }
    end

    # One Address for each that the URI stands for.
    def inherited_groups(uri, inherited, tls)
      inherited.descriptors_for(uri).map do |number|
        own = inherited.own?(number)
        ios = [number, *inherited.siblings_of(number)].map { |each| IO.for_fd(each) }
        ios.each { |io| io.close_on_exec = true }
        ios.each { |io| allow_siblings(io) } if own
        @opener.check(ios.first, tls) if tls
        place = Inherited.uri_of(number)
        Address.new(url: Rondo::Address.url_of(place, uri), uri: uri, tls: tls, foreign: !own, ios: ios,
                    shared: !own || place.start_with?("unix:"))
      end
    end

    # @return [Array, nil] what tells a file from the next one of that name
    def file_of(address)
      path = Rondo::Address.without_mark(address.url)[%r{\Aunix://(/.*)}, 1] or return
      stat = File.stat(path)
      [stat.dev, stat.ino, stat.mtime]
    rescue SystemCallError
      nil
    end

    # The first one is bound without SO_REUSEPORT: it would share a port with a stranger's servers. It lets nobody in,
    # because it is replaced at once.
    def open_new(uri, tls)
      port = nil
      Rondo::Address.resolve(Rondo::Address.parse(uri).merge(tls: tls)).map do |wanted|
        wanted = wanted.merge(port: port) if port&.positive?
        opened = @opener.open(wanted.merge(reserves: true))
        port = opened.port if wanted[:port]&.zero?
        made = Address.new(url: opened.url, uri: uri, tls: wanted[:tls], shared: wanted[:kind] == :unix, foreign: false,
                           ios: [opened.io])
        made.shared ? made : exchange(made)
      end
    end

    # While the one without SO_REUSEPORT holds the port, one with it takes its place.
    def exchange(address)
      first = address.ios.first
      allow_siblings(first)
      address.ios[0] = open_another(address)
      first.close
      address
    end

    # Also to one that a process without workers opened.
    def allow_siblings(io)
      socket = Socket.for_fd(io.fileno)
      socket.autoclose = false
      socket.setsockopt(:SOCKET, :REUSEPORT, true)
    rescue SystemCallError
      nil # a Unix socket
    end

    def open_another(address)
      options = Rondo::Address.parse(address.uri)
      place = Rondo::Address.place(address.url)
      @opener.open(options.merge(place, reuse_port: true, tls: address.tls)).io
    end
  end
end
