# frozen_string_literal: true

# Attacks on a port for TLS, each bounded in number and time. Each method returns when its clients have
# said all they have to say; the block gets them while they still hold what they hold.
# SPDX-License-Identifier: MIT

require "openssl"
require "rbconfig"
require "socket"

class Attacks
  PATIENCE = 60
  SOURCE = File.expand_path("attacker.c", __dir__)

  # @return [String] path of the program, compiled when it is older than its source
  def self.program
    @program ||= File.expand_path("../../build/attacker", __dir__).tap do |path|
      next if File.exist?(path) && File.mtime(path) > File.mtime(SOURCE)

      FileUtils.mkdir_p(File.dirname(path))
      system(ENV.fetch("CC", "cc"), "-D_GNU_SOURCE", "-O1", SOURCE, "-lssl", "-lcrypto", "-o", path, exception: true)
    end
  end

  # @param port [Integer]
  # @param size [Integer] how many clients a large attack has
  def initialize(port, size)
    @port = port
    @size = size
  end

  # @return [String] of one of the kinds of attacker.c
  def attacker(kind, count)
    IO.popen([self.class.program, @port.to_s, kind, count.to_s], &:read)
  end

  def hello
    @hello ||= begin
      ours, theirs = UNIXSocket.pair
      secure = OpenSSL::SSL::SSLSocket.new(ours, OpenSSL::SSL::SSLContext.new)
      secure.hostname = "localhost"
      secure.connect_nonblock(exception: false)
      theirs.readpartial(65_536)
    end
  end

  def raw(count, &block)
    sockets = Array.new(count) { TCPSocket.new("127.0.0.1", @port) }
    sockets.each { |socket| socket.setsockopt(:TCP, :NODELAY, true) }
    sockets.each(&block)
    sockets
  end

  # A server that closes meanwhile is no failure of the attack.
  def send_to(socket, bytes)
    socket.write(bytes)
  rescue SystemCallError
    nil
  end

  # ---- the attacks ----

  def handshakes(&block)
    threads = Array.new(4) do
      Thread.new { (@size / 8).times { secure(&:close) } }
    end
    threads.each(&:join)
    block.call([])
  end

  def half_hellos
    yield raw(@size) { |socket| send_to(socket, hello.byteslice(0, hello.bytesize - 10)) }
  end

  def hellos_that_stay
    yield raw(@size) { |socket| send_to(socket, hello) }
  end

  def heads_of_records
    yield raw(@size) { |socket| send_to(socket, "\x16\x03\x01\x40\x00\x01\x00\xff\x00".b) }
  end

  def huge_hellos
    record = ->(bytes) { ["\x16\x03\x01".b, [bytes.bytesize].pack("n"), bytes].join }
    whole = [record.call("\x01\x01\xff\x00".b + ("x" * 16_000)), *Array.new(5) { record.call("x" * 16_000) }].join
    yield raw(@size / 20) { |socket| send_to(socket, whole) }
  end

  def bytes_one_by_one
    sockets = raw(10) { nil }
    hello.each_char { |byte| sockets.each { |socket| send_to(socket, byte) } }
    yield sockets
  end

  def garbage
    random = Random.new(1)
    yield raw(@size) { |socket| send_to(socket, random.bytes(1 + random.rand(300))) }
  end

  def plain_http
    yield raw(@size) { |socket| send_to(socket, "GET / HTTP/1.1\r\nhost: a\r\n\r\n") }
  end

  # They ask for much, and read nothing of it.
  def clients_that_stop_reading
    sockets = Array.new(@size / 20) do
      secure.tap { |client| client.write("GET /big HTTP/1.1\r\nhost: a\r\n\r\n" * 3) }
    end
    yield sockets
  end

  def new_keys
    raise "new keys were made without a limit" unless attacker("keys", 500) == "closed\n"

    yield []
  end

  def renegotiations
    result = attacker("renegotiate", 50)
    raise "a client renegotiated: #{result}" unless result == "closed\n"

    yield []
  end

  def records_of_one_byte
    result = attacker("records", @size * 20)
    raise "an upload in records of one byte: #{result}" unless result == "#{@size * 20}\nopen\n"

    yield []
  end

  def small_fragments
    result = attacker("fragments", 1)
    raise "records of 512 bytes: #{result.bytesize}" unless result.start_with?("0123456789" * 10_000)

    yield []
  end

  ALL = %i[handshakes half_hellos hellos_that_stay heads_of_records huge_hellos bytes_one_by_one garbage plain_http
           clients_that_stop_reading new_keys renegotiations records_of_one_byte small_fragments].freeze
  # They need answers of the application.
  WITH_APPLICATION = %i[clients_that_stop_reading renegotiations records_of_one_byte small_fragments].freeze

  private

  def secure
    socket = TCPSocket.new("127.0.0.1", @port)
    client = OpenSSL::SSL::SSLSocket.new(socket, OpenSSL::SSL::SSLContext.new)
    client.sync_close = true
    client.connect
    block_given? ? yield(client) : client
  end
end
