# frozen_string_literal: true

# Messages between the processes of a cluster, with descriptors: a kind and named texts over a
# SOCK_SEQPACKET pair, so that a message arrives whole or not at all. Needs no gem, because the
# application's own versions are not chosen yet where this is loaded.
# SPDX-License-Identifier: MIT

require "socket"

module Rondo
  # One end of a connection between two processes.
  # @api private
  class MessageSocket
    # A message: its kind, its fields and its descriptors, and how many of these the kernel has dropped, because this
    # process had no room for them.
    Message = Struct.new(:kind, :fields, :ios, :dropped) do
      # @return [void]
      # @raise [IOError] half a line: descriptors were dropped; the others are closed
      def check
        return unless dropped&.positive?

        ios.each(&:close)
        raise IOError, "#{dropped} of its descriptors did not fit into this process (see ulimit -n)"
      end

      # @return [String, nil]
      def [](name)
        fields[name.to_s]
      end

      # @return [Integer] 0 where the field is missing
      def number(name)
        self[name].to_i
      end
    end

    # Said before a message whose descriptors do not fit into one (SCM_MAX_FD is 253).
    MORE = "more"
    SLICE = 200
    # The field with the number of descriptors. If a message could not be sent completely, some of them are missing.
    COUNT = "descriptors"
    LONGEST = 65_536
    # Room for the descriptors of a message; Ruby would look for it in ever larger steps.
    CONTROL = (SLICE * 4) + 256

    # @return [Array(MessageSocket, MessageSocket)] both ends, closed by exec
    def self.pair
      UNIXSocket.pair(:SEQPACKET).map { |socket| new(socket) }
    end

    # @param descriptor [Integer] of an end that this process inherited
    # @return [MessageSocket]
    # @raise [SystemCallError] it is not a socket
    def self.adopt(descriptor)
      socket = UNIXSocket.for_fd(descriptor)
      socket.close_on_exec = true
      new(socket)
    end

    # @param io [UNIXSocket]
    def initialize(io)
      @io = io
      @ios = []
    end

    # @return [UNIXSocket] to wait for
    attr_reader :io

    # @param kind [Symbol, String]
    # @param ios [Array<IO>] descriptors that go along
    # @param fields [Hash{Symbol => #to_s}]
    # @return [Boolean] false when the other end is closed, or no longer reads
    def notify(kind, ios: [], **fields)
      *first, last = ios.each_slice(SLICE).to_a
      first.each { |some| send_message([MORE], some) }
      send_message([kind, COUNT, ios.size, *fields.flatten], last || [])
      true
    rescue SystemCallError, IOError
      false
    end

    # Does not wait for the other end to read.
    # @param kind [Symbol]
    # @param fields [Hash{Symbol => #to_s}]
    # @return [Boolean] false: it was not sent
    def notify_now(kind, **fields)
      text = join([kind, COUNT, 0, *fields.flatten])
      @io.sendmsg_nonblock(text, Socket::MSG_NOSIGNAL, exception: false) == text.bytesize
    rescue SystemCallError, IOError
      false
    end

    # Waits for a message.
    # @return [Message, nil] nil when the other end is closed
    def receive
      read { @io.recvmsg(LONGEST, 0, CONTROL, scm_rights: true) }
    end

    # It does not ask IO#wait_readable first: when a signal arrives, such as SIGCHLD, that says "no" beside a message.
    # @return [Message, nil, false] false when there is nothing yet
    def receive_now
      read { @io.recvmsg_nonblock(LONGEST, 0, CONTROL, scm_rights: true, exception: false) }
    end

    # @return [Integer]
    def fileno
      @io.fileno
    end

    # @return [Boolean]
    def closed?
      @io.closed?
    end

    # @return [void]
    def close
      @ios.each(&:close)
      @io.close
    end

    private

    # A message whose first part is there comes whole: its sender never stops in between.
    def read
      part = yield
      return false if part == :wait_readable

      text, _, _, *extras = part
      @ios.concat(extras.flat_map { |extra| extra.cmsg_is?(:SOCKET, :RIGHTS) ? extra.unix_rights : [] })
      return if text.nil? || text.empty?

      text == MORE ? receive : message(text)
    rescue Errno::ECONNRESET
      # The other end was closed before it read everything; what it sent can still be read.
      retry
    rescue SystemCallError, IOError
      nil
    end

    def send_message(words, ios)
      rights = ios.empty? ? [] : [Socket::AncillaryData.unix_rights(*ios)]
      @io.sendmsg(join(words), Socket::MSG_NOSIGNAL, nil, *rights)
    end

    def join(words)
      words.map { |word| word.to_s.b.tr("\0", " ") }.join("\0").byteslice(0, LONGEST)
    end

    def message(text)
      kind, *words = text.split("\0", -1)
      fields = words.each_slice(2).to_h { |name, value| [name, value.to_s.dup.force_encoding(Encoding::UTF_8)] }
      count = fields.delete(COUNT)
      ios = attached_ios(count)
      Message.new(kind.to_sym, fields, ios, [count.to_i - ios.size, 0].max)
    end

    def attached_ios(count)
      ios, @ios = @ios, []
      count ? ios.pop(count.to_i).tap { ios.each(&:close) } : ios
    end
  end
end
