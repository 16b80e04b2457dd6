# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# What all tests of this folder share: one server per test class, browsers that are closed again,
# and a gate (a named pipe) at which a streaming application waits until its client has read what
# was sent so far. A server that held parts back would never let such a test end.

require "test_helper"
require "fileutils"
require "tmpdir"
require "support/server_process"
require_relative "browser"

class AppCase < Minitest::Test
  HUNDRED_MEGABYTES = 100 * 1000 * 1000

  # Starting an application takes long; it is done once per class, at the first test.
  class << self
    def server
      @server ||= start_server
    end

    def gate
      @gate ||= File.join(Dir.mktmpdir("rondo-gate"), "gate").tap { |path| File.mkfifo(path) }
    end

    def stop_server
      @server&.stop
    ensure
      FileUtils.rm_rf(File.dirname(@gate)) if @gate
      @server = @gate = nil
    end

    def run(...)
      super
    ensure
      stop_server
    end

    # @return [String] what a made-up file of a hundred megabytes hashes to
    def large_digest
      @@large_digest ||= MadeUpFile.new(HUNDRED_MEGABYTES).digest # rubocop:disable Style/ClassVars
    end
  end

  def server
    self.class.server
  end

  def browser
    @browser ||= Browser.new(server.url)
  end

  # @return [WebsocketPeer] that the browser opened; closed at the end of the test
  def open_websocket(path, **options)
    (@peers ||= []) << browser.websocket(path, **options)
    @peers.last
  end

  def teardown
    @peers&.each(&:close)
    @browser&.close
    return if passed? || skipped?
    warn "the log of the server:\n#{server.log[-4000..] || server.log}"
  end

  # Opens the gate for streaming: the block gets a lambda that lets the application go on once.
  def with_gate
    # Opened for reading too, so that neither side waits for the other to open it.
    File.open(self.class.gate, "r+") do |pipe|
      pipe.sync = true
      opened = 0
      yield(-> { pipe.write(".") && opened += 1 })
    ensure
      # Whatever the test thought of the answer, the server must not be left waiting.
      pipe.write("." * (8 - opened)) if opened < 2
    end
  end

  # Reads a streamed answer and opens the gate after each of the lines it waits for.
  # @return [Array(Net::HTTPResponse, String)]
  def read_streamed(path, lines)
    body = +""
    waiting = lines.dup
    response = with_gate do |open_gate|
      browser.get(path) do |answer|
        answer.read_body do |part|
          body << part
          open_gate.call while !waiting.empty? && body.include?(waiting.first) && waiting.shift
        end
      end
    end
    assert_empty waiting, "these never came: #{body.inspect}"
    [response, body]
  end

  # The same file must have come out at the other end.
  def assert_large_upload(path, **options)
    file = MadeUpFile.new(HUNDRED_MEGABYTES)
    response = browser.upload(path, file, fields: { "title" => "large" }, **options)
    assert_equal "200", response.code, response.body
    assert_equal "large made up.bin #{HUNDRED_MEGABYTES} #{self.class.large_digest}", response.body
  end
end
