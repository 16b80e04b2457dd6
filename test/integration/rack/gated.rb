# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# For a {RackCase}: requests that stay inside the application until a gate opens.

module Gated
  def setup
    super
    @entered = Queue.new
    @gate = Queue.new
  end

  def teardown
    @gate.close
    super
  end

  # Serves an application whose /wait stays inside until the gate opens.
  def start_gated(**settings)
    start(lint: false, **settings) do |env|
      if env["PATH_INFO"] == "/wait"
        @entered << Thread.current
        @gate.pop
      end
      [200, {}, [env["PATH_INFO"]]]
    end
  end

  # @return [Array<RawClient>] clients that have asked for the path
  def ask(count, path)
    Array.new(count) { connect.tap { |client| client.write(bytes("GET", path)) } }
  end

  # @return [Array<RawClient>] clients whose requests are inside the application
  def enter(count)
    clients = ask(count, "/wait")
    @threads = Array.new(count) { take(@entered, "a request enters the application") }
    clients
  end

  def release(clients)
    clients.size.times { @gate << true }
    clients.each { |client| assert_equal "/wait", client.response.body }
  end
end
