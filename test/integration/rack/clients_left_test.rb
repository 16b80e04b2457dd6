# frozen_string_literal: true

# Clients that the application still holds when their connection is gone: the connection has ended, the server has
# stopped or was collected, or this is a child of the process. Their methods return false.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "support/websocket_peer"
require "support/xor_proxy"

class ClientsLeftTest < Minitest::Test
  # Publishes its client to the test.
  class Giver
    def initialize(queue)
      @queue = queue
    end

    def on_open(client)
      @queue << client
    end

    def on_message(client, data)
      client.write(data)
    end

    def on_close(client)
      @queue << client.close_code
    end
  end

  LEFT = { write: ["x"], close: [], open?: [], pending: [], timeout: [], subscribe: ["a"], unsubscribe: ["a"], event: ["x"],
           close_code: [], close_reason: [], protocol: [], pubsub?: [] }.freeze
  SAYS = [false, nil, false, -1, 0, nil, false, false, nil, nil, :websocket, 0].freeze

  def setup
    @queue = Queue.new
    serve
    @peer = WebsocketPeer.new(@url, "path")
    @client = @queue.pop
  end

  def teardown
    stop
    @peer.close
  end

  def test_the_connection_has_gone
    @peer.close
    assert_equal 1006, @queue.pop
    assert_says_no
  end

  def test_the_server_has_stopped
    stop
    assert_says_no
  end

  def test_the_server_was_collected
    stop
    @server = @thread = nil
    GC.start
    assert_says_no
  end

  def test_in_a_child
    reader, writer = IO.pipe
    pid = fork do
      writer.write(Marshal.dump([answers, @client.env["PATH_INFO"], Rondo.publish("a", "x")]))
      writer.close
      exit!(0)
    end
    writer.close
    assert_equal [SAYS, "/path", false], Marshal.load(reader.read)
    assert_predicate Process.wait2(pid).last, :success?
    assert_equal "still here", @peer.ask("still here")
    assert @client.write("for the parent")
    assert_equal "for the parent", @peer.hear
  end

  def test_threads_that_go_on_while_it_ends
    threads = Array.new(3) { Thread.new { nil while @client.write("x" * 100) && @client.subscribe("a") } }
    stop
    threads.each { |thread| assert thread.join(60) }
    assert_says_no
  end

  private

  def answers
    LEFT.map { |name, arguments| @client.public_send(name, *arguments) }
  end

  def assert_says_no
    assert_equal SAYS, answers
    assert_equal "/path", @client.env["PATH_INFO"]
    @client.timeout = 5
    @client.handler = nil
    @client.handler = self
    assert_kind_of Giver, @client.handler
  end

  # In a method of its own, so that no reference stays on the stack.
  def serve
    queue = @queue
    app = lambda do |env|
      env["rack.upgrade"] = Giver.new(queue)
      [0, {}, []]
    end
    @server = Rondo::Server.new(app, environment: "test")
    @url = XorProxy.front(@server.listen(XorProxy.bind("tcp://127.0.0.1:0")))
    @thread = Thread.new(@server, &:run)
  end

  def stop
    @server&.stop(force: true)
    @thread&.join(60)
  end
end
