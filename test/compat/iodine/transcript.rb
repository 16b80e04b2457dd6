# frozen_string_literal: true

# What clients of a program say and get, line by line, with what the program writes and its exit code. Two runs are
# compared by it.
# SPDX-License-Identifier: MIT

require_relative "contender"
require "support/event_stream"
require "support/websocket_peer"

class Transcript
  KINDS = { 1 => "text", 2 => "binary", 8 => "close" }.freeze
  # Fields that change from run to run.
  LEFT_OUT = /\A(?:date|last-modified|etag|server|keep-alive|connection):/i

  # A WebSocket with a name.
  class Peer
    def initialize(transcript, name, url, path, **fields)
      @transcript = transcript
      @name = name
      @peer = WebsocketPeer.new(url, path, **fields)
      transcript.note("#{name} opens /#{path}: #{@peer.head.lines.first.chomp}")
    end

    def say(text)
      @transcript.note("#{@name} > #{text.inspect}")
      @peer.say(text)
      self
    end

    def say_binary(bytes)
      @transcript.note("#{@name} > binary #{bytes.b.inspect}")
      @peer.send_bytes(WebsocketPeer::F.frame(WebsocketPeer::F::BINARY, bytes))
      self
    end

    # The next message, or the end.
    def hear
      frame = next_frame
      @transcript.note("#{@name} < #{frame ? "#{KINDS[frame.opcode] || "frame #{frame.opcode}"} #{frame.payload.inspect}" : "end"}")
      self
    end

    def leave
      @transcript.note("#{@name} leaves")
      close
    end

    def close
      @peer.close
    end

    # Without a line in the transcript: says it until the others hear it, which may take as long as their workers need to
    # tell the hub of their subscriptions.
    def reach(others, word)
      @peer.say(word) until others.all? { |other| other.hears_within?(0.1) }
      @peer.say("#{word} over")
      [self, *others].each { |peer| peer.skip_to("#{word} over") }
    end

    def hears_within?(seconds)
      @peer.wait_readable(seconds)
    end

    def skip_to(text)
      nil until next_frame&.payload == text
    end

    private

    def next_frame
      frame = @peer.next_frame or return
      return frame unless frame.opcode == WebsocketPeer::F::PING

      @peer.send_bytes(WebsocketPeer::F.frame(WebsocketPeer::F::PONG, frame.payload))
      next_frame
    end
  end

  # A socket with a name.
  class Wire
    def initialize(transcript, name, url)
      @transcript = transcript
      @name = name
      @raw = RawClient.new(url)
    end

    def close
      @raw.close
    end

    private

    # @return [self]
    def heard(what)
      @transcript.note("#{@name} < #{what}")
      self
    end
  end

  # A stream of events.
  class Stream < Wire
    def initialize(transcript, name, url, path)
      super(transcript, name, url)
      @raw.write("GET /#{path} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n")
      @events = EventStream.new
      head = +"".b
      head << @raw.read_some until head.include?("\r\n\r\n")
      head, rest = head.split("\r\n\r\n", 2)
      @events.feed(rest)
      transcript.note("#{name} opens /#{path}: #{head.lines.first.chomp}")
    end

    # The next event, or the end.
    def hear
      while @events.events.empty?
        more = @raw.read_some or break
        @events.feed(more)
      end
      event = @events.events.shift
      heard(event ? "event #{event.type} #{event.data.inspect}" : "end")
    end
  end

  # A connection of bytes.
  class Line < Wire
    def initialize(transcript, name, url)
      super
      @buffer = +"".b
      transcript.note("#{name} connects")
    end

    def say(text)
      @transcript.note("#{@name} > #{text.inspect}")
      @raw.write(text)
      self
    end

    # Bytes up to this text, however they were cut.
    def hear(text)
      hear_silently(text)
      heard(@taken.inspect)
    end

    def hear_silently(text)
      until @buffer.include?(text)
        more = @raw.read_some or break
        @buffer << more
      end
      @taken = @buffer.slice!(0, (@buffer.index(text) || @buffer.size) + text.size)
    end

    # The status of a response; its other lines may have any order.
    def hear_status
      hear_silently("\r\n\r\n")
      heard(@taken.lines.first.inspect)
    end

    def hear_end
      while (more = @raw.read_some)
        @buffer << more
      end
      close # a server may wait for that
      heard("#{@buffer.inspect} end")
    end
  end

  # @param program [Contender]
  def initialize(program)
    @program = program
    @lines = []
    @peers = []
  end

  def note(line)
    @lines << line.b
  end

  def websocket(name, path = "", **fields)
    Peer.new(self, name, @program.url, path, **fields).tap { |peer| @peers << peer }
  end

  def stream(name, path = "")
    Stream.new(self, name, @program.url, path).tap { |stream| @peers << stream }
  end

  def line(name)
    Line.new(self, name, @program.url).tap { |line| @peers << line }
  end

  # @param fields [Hash{String => String}] of the request
  def get(path, fields = {})
    head, body = ask("GET #{path} HTTP/1.1\r\nHost: a\r\n#{fields.map { |pair| "#{pair.join(": ")}\r\n" }.join}\r\n")
    status, *lines = head.lines.map(&:chomp)
    note(["GET #{path}", *fields.map { |pair| pair.join(": ") }].join(", "))
    note("  #{status[/\d{3}/]}")
    lines.map { |line| line.sub(/\A([^:]+): */) { "#{$1.downcase}: " } }.grep_v(LEFT_OUT).sort.each { |line| note("  #{line}") }
    note("  #{body.inspect}")
  end

  # @param pattern [Regexp] waits for it in the output
  def wait_for_output(pattern)
    @program.wait_for_output(pattern)
  end

  # Stops the program; its whole output and its exit code.
  # @param except [Regexp] lines of the output that are left out
  # @param sorted [Boolean] the lines of the output, where several threads write them
  # @yield between the signal and the end
  def finish(signal = "INT", sorted: false, except: nil)
    @program.signal(signal) if signal
    yield if block_given?
    @peers.each(&:close) # a server may wait for the Close of each
    code = @program.finish
    lines = @program.output.lines(chomp: true)
    lines = lines.grep_v(except) if except
    (sorted ? lines.sort : lines).each { |line| note("output: #{line}") }
    note("exit #{code}")
  end

  # @param pattern [Regexp] waits for it in a file of the program's folder
  def wait_for_file(name, pattern)
    @program.wait_for_file(name, pattern)
  end

  # What the program wrote into a file of its folder.
  # @yieldparam lines [Array<String>]
  # @yieldreturn [Array<String>]
  def note_file(name)
    lines = File.readlines(File.join(@program.folder, name), chomp: true)
    lines = yield lines if block_given?
    lines.each { |line| note(line) }
  end

  def to_s
    @lines.map { |line| "#{line}\n".b }.join
  end

  private

  # @return [Array(String, String)] head and body
  def ask(request)
    client = RawClient.new(@program.url)
    client.write(request)
    buffer = +"".b
    buffer << client.read_some until buffer.include?("\r\n\r\n")
    head, body = buffer.split("\r\n\r\n", 2)
    size = head[/^content-length: *(\d+)/i, 1].to_i
    body << client.read_some while body.bytesize < size
    [head, body]
  ensure
    client&.close
  end
end
