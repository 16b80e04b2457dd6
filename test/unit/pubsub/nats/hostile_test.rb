# frozen_string_literal: true

# A NATS that is broken, or belongs to somebody who wants to harm: what it sends has limits, and each wait an end.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/nats"
require "rondo/pubsub/nats/stream"

class HostileNatsTest < Minitest::Test
  Nats = Rondo::PubSub::Nats
  INFO = "INFO {\"max_payload\":1000}\r\n"

  def setup
    @server = TCPServer.new("127.0.0.1", 0)
    @said = []
    @messages = []
  end

  def teardown
    @thread&.kill
    [@link, @server].compact.each(&:close)
  end

  def test_a_greeting_that_is_none
    ["INFO []\r\n", "INFO 5\r\n", "INFO {\r\n", "INFO #{"[" * 5000}\r\n", "INFO \xff\r\n", "HTTP/1.1 200 OK\r\n", "INFO {\"a\":\"#{"x" * (1 << 20)}\"}\r\n"].each do |greeting|
      error = assert_raises(Nats::Link::Broken, greeting[0, 20]) { connect(greeting) }
      assert_match(/\Anot the NATS protocol|closed|reset|no answer within 2 s/i, error.message)
    end
  end

  # Answers are not collected for ever.
  def test_who_asks_and_does_not_read_is_not_read_either
    connect(INFO) do |socket|
      loop { socket.write("PING\r\n" * 10_000) }
    end
    error = assert_raises(Nats::Link::Broken) { turns { assert_operator @link.unsent_bytes, :<, 8 << 20 } }
    assert_match(/no answer within/, error.message)
  end

  def test_other_words_do_not_put_off_an_answer
    connect(INFO, timeout: 0.5) do |socket|
      loop { socket.write("+OK\r\n") and socket.wait_readable(0.01) && socket.read_nonblock(4096, exception: false) }
    end
    error = assert_raises(Nats::Link::Broken) { turns }
    assert_equal "no answer within 0.5 s", error.message
  end

  def test_garbage_ends_the_connection
    ["MSG\r\n", "MSG a 1 -5\r\n", "MSG a 1 99999999999\r\n", "MSG a 1 #{"9" * 100_000}\r\n", "HMSG a 1 20 10\r\n", ("x" * (2 << 20)).to_s,
     "HMSG a 1 x y\r\n", "FOO\r\n", "\r\n", "\0\r\n", "MSG #{"a" * 20_000} 1 2\r\n"].each do |bytes|
      assert_raises(Nats::Wire::Invalid, bytes[0, 20]) { Nats::Wire.new(1 << 20).feed(bytes) { flunk bytes[0, 20] } }
    end
  end

  def test_headers_without_end
    head = "NATS/1.0\r\n#{"a:b\r\n" * 200_000}Rondo-Kind: b\r\n\r\n"
    found = nil
    Nats::Wire.new(4 << 20).feed("HMSG a 1 #{head.bytesize} #{head.bytesize + 2}\r\n#{head}hi\r\n") { |_, message| found = message }
    assert_equal "hi", found.data
    assert_equal({ "a" => "b" }, found.headers.slice("a"))
    assert_nil found.headers["Rondo-Kind"]
  end

  def test_what_it_says_is_one_short_line_without_control_characters
    assert_equal "a  [31mb", Nats::Link.line("a\n\e[31mb\0")
    assert_equal 300, Nats::Link.line("x" * 100_000).size
    assert_equal "\ufffd", Nats::Link.line("\xff".b)
    assert_equal "JetStream: #{"y" * 300}", Nats::Answers.text_of("description" => "y" * 1000)
  end

  private

  def connect(greeting, timeout: 2)
    @thread = Thread.new do
      socket = @server.accept
      socket.write(greeting)
      yield socket if block_given?
    rescue SystemCallError, IOError
      nil
    ensure
      socket&.close
    end
    url = URI("nats://127.0.0.1:#{@server.addr[1]}")
    @link = Nats::Link.new(url, Nats::Credentials.new({}), tls: nil, timeout: timeout, ping: 60, bytes_max: 1 << 20,
                                                           on_refusal: ->(text) { @said << text }) { |message| @messages << message }
  end

  # As the pump does it.
  def turns
    loop do
      IO.select(@link.reads? ? [@link.io] : nil, @link.unsent_bytes.positive? ? [@link.io] : nil, nil, @link.patience)
      @link.turn
      yield if block_given?
    end
  end
end
