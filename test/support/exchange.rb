# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# One connection of the conformance runner as a small state machine, and the loop that drives many
# of them on one thread: send pieces, collect the final responses, see how the connection ends.
# A piece may wait until the server's side has taken the one before (SIOCOUTQ is zero: read by the
# server on a Unix socket, acknowledged by its kernel on TCP), so that cuts are real without sleeps.

require_relative "raw_client"

class Exchange
  TIOCOUTQ = 0x5411
  DEADLINE = 30
  # How long a piece waits until its predecessor is taken: a server may rightly leave bytes unread.
  PATIENCE = 0.05
  FOLLOW_UP = "GET /follow-up HTTP/1.1\r\nHost: follow-up\r\nConnection: close\r\n\r\n"

  attr_reader :socket, :responses, :ending, :error, :key

  # @param pieces [Array<String>] what to send, in order
  # @param heads [Array<Boolean>] for each expected final response: does it answer a HEAD?
  # @param statuses [Array<Array>] for each expected final response: the statuses that let it go on
  # @param follow_up [Boolean] once all expected responses have come, ask for another one
  # @param half_close [Boolean] shut down the sending side after the last piece
  # @param patient [Boolean] send a piece only when the one before has been taken
  # @param until_answered [Boolean] leave once all expected responses have come
  def initialize(url, pieces, heads:, statuses: [], follow_up: false, half_close: false,
                 patient: true, until_answered: false, key: nil)
    @url = url
    @pieces = pieces.reject(&:empty?)
    @heads = heads
    @statuses = statuses
    @follow_up = follow_up
    @half_close = half_close
    @patient = patient
    @until_answered = until_answered
    @key = key
    @responses = []
    @buffer = String.new(encoding: Encoding::BINARY)
    @deadline = now + DEADLINE
  end

  # @return [Boolean] false when the listen queue is full and the caller has to try again
  def open
    @socket ||= RawClient.connect(@url)
    true
  rescue Errno::EAGAIN
    false
  end

  # @return [Boolean] whether it has more to send
  def sending?
    !@broken && (!@pieces.empty? || @half_close)
  end

  def done?
    !@ending.nil?
  end

  # Sends the next piece if the server has taken the one before.
  def advance
    return if done? || !sending? || !taken?
    return shut_down if @pieces.empty?
    piece = @pieces.first
    sent = @socket.write_nonblock(piece, exception: false)
    return if sent == :wait_writable
    @waiting_since = nil
    @deadline = now + DEADLINE
    sent == piece.bytesize ? @pieces.shift : @pieces[0] = piece.byteslice(sent..)
  rescue Errno::EPIPE, Errno::ECONNRESET
    # The bytes that the server sent before it closed are still to be read.
    @broken = true
  end

  # Reads the bytes that are there.
  def receive
    chunk = @socket.read_nonblock(65_536, exception: false)
    return if chunk == :wait_readable
    chunk ? @buffer << chunk : @eof = true
    parse
    finish(:closed) if @eof && !done?
  rescue Errno::ECONNRESET
    finish(:reset)
  rescue ResponseParser::Malformed => e
    @error = e.message
    finish(:malformed)
  end

  # Gives up when no byte has moved for too long.
  def expire
    finish(:timeout) if !done? && now > @deadline
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def taken?
    return true unless @patient
    queued = [0].pack("i")
    @socket.ioctl(TIOCOUTQ, queued)
    return true if queued.unpack1("i").zero?
    @waiting_since ||= now
    now - @waiting_since > PATIENCE
  end

  def shut_down
    @half_close = false
    @socket.shutdown(:WR)
  rescue Errno::ENOTCONN
    @broken = true
  end

  def parse
    while (response = ResponseParser.take(@buffer, head: @heads[@responses.size] || false, eof: @eof))
      next if response.interim?
      @responses << response
      wanted = @statuses[@responses.size - 1]
      return finish(:wrong) if wanted && !wanted.include?(response.status)
      return finish(:answered) if @until_answered && @responses.size == @heads.size
      ask_again if @follow_up && @responses.size == @heads.size
    end
    raise ResponseParser::Malformed, "bytes after the last response" if @eof && !@buffer.empty?
  end

  def ask_again
    @follow_up = false
    @pieces << FOLLOW_UP
    advance
  end

  def finish(ending)
    @ending ||= ending
    @socket.close
  end
end

# Drives exchanges, a limited number at a time.
class ExchangeLoop
  AT_ONCE = 96

  # @param exchanges [Enumerator<Exchange>]
  # @yield [Exchange] each finished one
  def self.run(exchanges, &finished)
    new(exchanges, &finished).run
  end

  def initialize(exchanges, &finished)
    @waiting = exchanges
    @finished = finished
    @active = []
  end

  def run
    loop do
      refill
      return if @active.empty?
      sending = @active.select { |exchange| exchange.advance || exchange.sending? }
      by_socket = @active.to_h { |exchange| [exchange.socket, exchange] }
      readable, = IO.select(by_socket.keys, nil, nil, sending.empty? ? 0.5 : 0.0002)
      readable&.each { |socket| by_socket[socket].receive }
      @active.each(&:expire)
      collect
    end
  ensure
    @active.each { |exchange| exchange.socket.close } # of a test that took too long: the server need not wait for them
  end

  private

  def refill
    while @active.size < AT_ONCE
      @next ||= @waiting.next
      return unless @next.open
      @active << @next
      @next = nil
    end
  rescue StopIteration
    nil
  end

  def collect
    done, @active = @active.partition(&:done?)
    done.each(&@finished)
  end
end
