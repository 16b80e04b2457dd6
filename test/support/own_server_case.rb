# frozen_string_literal: true

# A server in the process of the tests, which starts and ends with each test: on a thread of its own, with a log that a
# test can wait for.
# SPDX-License-Identifier: MIT

require "test_helper"
require "socket"
require "timeout"
require "rondo"

# What the tests of raw connections and of outgoing ones share.
class OwnServerCase < Minitest::Test
  DEADLINE = 60
  PLAIN = ->(_env) { [200, {}, ["plain"]] }

  # Lines with their level.
  class Log
    attr_reader :lines

    def initialize
      @lines = Queue.new
    end

    def info(line) = @lines << [:info, line]
    def warn(line) = @lines << [:warn, line]
    def error(line) = @lines << [:error, line]
  end

  def setup
    @log = Log.new
    @sockets = []
  end

  def teardown
    stop
    @sockets.each(&:close)
  end

  def stop
    @server&.stop(force: true)
    @thread&.join
    @server = nil
  end

  # @yield before it runs
  def serve(app = PLAIN, **settings)
    @server = Rondo::Server.new(app, log: @log, min_threads: 2, max_threads: 2, **settings)
    @http = @server.listen("tcp://127.0.0.1:0")
    yield @server if block_given?
    @thread = Thread.new { @server.run }
  end

  def within(&block)
    Timeout.timeout(DEADLINE, &block)
  end

  def line(socket)
    within { socket.gets }
  end
end
