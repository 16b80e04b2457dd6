# frozen_string_literal: true

# Many readers of event streams on one thread. Each comes back by its last id when its connection ends, and notes what
# it got in few bytes: ids, and the texts of each channel once.
# SPDX-License-Identifier: MIT

require "socket"

class ChaosCrowd
  # Seconds until a reader whom nobody serves tries again.
  PAUSE = 0.05
  # Longest answer to a request that opens no stream.
  HEAD_MAX = 16_384

  # One of them.
  class Reader
    attr_reader :ids, :socket, :channel
    # When it would have had to load its state again, and its last id then: gaps that it was told of.
    attr_reader :resets
    # What must not be: an id that is not above the one before, another text with an id that was seen.
    attr_reader :faults

    # @param texts [Hash{Integer => String}] of its channel, shared
    def initialize(channel, texts)
      @channel = channel
      @texts = texts
      @ids = []
      @resets = []
      @faults = []
      @due = 0
    end

    # @return [Boolean] whether it has a connection
    def open?(port, now)
      return true if @socket
      return false if now < @due

      connect(port)
    rescue SystemCallError
      later(now)
    end

    # @return [void]
    def read(now)
      bytes = @socket.read_nonblock(262_144, exception: false)
      return if bytes == :wait_readable
      return later(now) if bytes.nil?

      @rest << bytes
      take_head(now) unless @is_stream
      take_events if @is_stream
    rescue SystemCallError
      later(now)
    end

    # @return [false]
    def later(now = 0)
      @socket&.close
      @socket = nil
      @due = now + PAUSE
      false
    end

    private

    def connect(port)
      @socket = TCPSocket.new("127.0.0.1", port)
      id = "Last-Event-ID: #{@ids.last}\r\n" if @ids.any?
      @socket.write("GET /?#{@channel} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n#{id}\r\n")
      @rest = +"".b
      @is_stream = false
      true
    end

    def take_head(now)
      head, rest = @rest.split("\r\n\r\n", 2)
      return (later(now) if @rest.bytesize > HEAD_MAX) unless rest
      return later(now) unless head.start_with?("HTTP/1.1 200") && head.match?(%r{^content-type: text/event-stream}i)

      raise "the stream is in chunks" if head.match?(/^transfer-encoding/i)

      @is_stream = true
      @rest = rest
    end

    def take_events
      *events, rest = @rest.split("\n\n", -1)
      @rest = rest || +"".b
      events.each { |event| take(event) }
    end

    # Fields come in any order; comments are no events.
    def take(event)
      id = type = text = nil
      event.each_line("\n", chomp: true) do |line|
        case line
        when /\Aid: ?(\d+)/ then id = Regexp.last_match(1).to_i
        when /\Adata: ?/ then text = Regexp.last_match.post_match
        when /\Aevent: ?/ then type = Regexp.last_match.post_match
        end
      end
      return @resets << [Time.now.to_f, @ids.last] if type == "reset"

      note(id, text) if text && id
    end

    def note(id, text)
      @faults << "#{id} after #{@ids.last}" if @ids.any? && id <= @ids.last
      known = (@texts[id] ||= text)
      @faults << "#{text} where others got #{known}" unless known == text
      @ids << id
    end
  end

  attr_reader :readers

  # @param port [Integer] of the proxy
  # @param channels [Hash{String => Hash}] and the texts of each, filled here
  # @param each [Integer] readers of a channel
  def initialize(port, channels, each)
    @port = port
    @readers = channels.flat_map { |channel, texts| Array.new(each) { Reader.new(channel, texts) } }
    @cuts = 0
    @ended = false
    @thread = Thread.new { run }
  end

  # A third of them lose their connection.
  def cut
    @cuts += 1
  end

  def close
    @ended = true
    @thread.join
  end

  private

  def run
    turn until @ended
  ensure
    @readers.each(&:later)
  end

  def turn
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    cut_some if @cuts.positive?
    open = @readers.select { |reader| reader.open?(@port, now) }
    by_socket = open.to_h { |reader| [reader.socket, reader] }
    ready, = IO.select(by_socket.keys, nil, nil, PAUSE)
    ready&.each { |socket| by_socket[socket].read(now) }
  end

  def cut_some
    @cuts -= 1
    @readers.each_with_index { |reader, index| reader.later if (index + @cuts) % 3 == 0 } # rubocop:disable Style/NumericPredicate
  end
end
