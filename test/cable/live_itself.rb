# frozen_string_literal: true

# Runs Rails' own tests of ActionController::Live with the server's Live, in one of two ways:
#
#   plain    as Rails runs them, in a process that does not serve: they must find all of Rails as it was
#   served   each action is a request to a server of this process, on its sockets, and what an assertion reads is what a
#            client has got. Left out are tests that play the server: they take the parts from the stream themselves
#
#   ruby -Ilib test/cable/live_itself.rb FOLDER plain|served     tools/run_cable does both
# SPDX-License-Identifier: MIT

require "bundler/setup"
require "net/http"

FOLDER, WAY = ARGV.shift(2)
OURS = %w[test_async_stream test_abort_with_full_buffer test_ignore_client_disconnect
          test_delayed_autoload_after_write_within_interlock_hook].freeze
STREAMS = 20 # at least so many tests stream by the server

$LOAD_PATH.unshift(FOLDER)
$LOAD_PATH << File.expand_path("../../activesupport/lib", FOLDER) # for what the gem leaves out
ENV["MT_CPU"] = "0" # no test in a process of its own
require "rondo"
require "logger"
require "action_controller"
require "active_support/isolated_execution_state"
require "rondo/rails/live"

# In tests Rails gives actions no thread, so that they see the test's transaction.
OF_ITS_OWN = ActionController::Live.instance_method(:new_controller_thread)
Rondo::Rails::Live.attach(1000)

# A server for one request at a time, which runs what a test wants to have run.
class Served
  Answer = Struct.new(:response, :error)

  class << self
    attr_accessor :streams

    def instance
      @instance ||= new
    end
  end
  self.streams = 0

  def initialize
    @log = StringIO.new
    @server = Rondo::Server.new(method(:call), log: Logger.new(@log), min_threads: 2, max_threads: 2)
    @url = URI(@server.listen("tcp://127.0.0.1:0"))
    thread = Thread.new { @server.run }
    Minitest.after_run { @server.stop && thread.join }
  end

  # @yieldparam env [Hash] of the server
  # @yieldreturn [Array] an answer of Rack
  # @return [Answer] what the client got; or what was raised
  def request(&block)
    @waiting = block
    @locals = Thread.current.keys.to_h { |name| [name, Thread.current[name]] }
    @tester = Thread.current
    @raised = nil
    Answer.new(Net::HTTP.start(@url.host, @url.port, read_timeout: 60) { |http| http.get("/") }, @raised)
  end

  private

  # The thread of the request has what the thread of the test has.
  def call(env)
    @locals.each { |name, value| Thread.current[name] = value }
    ActiveSupport::IsolatedExecutionState.share_with(@tester)
    @waiting.call(env).tap { |_, _, body| Served.streams += 1 if body.respond_to?(:call) }
  rescue Exception => e # rubocop:disable Lint/RescueException -- a failed assertion is one, and the test's
    @raised = e
    [500, {}, []]
  end
end

# Before ActionController::TestCase.
module ByTheServer
  def process(...)
    if @controller.singleton_methods(false).include?(:new_controller_thread)
      @controller.singleton_class.remove_method(:new_controller_thread)
    end
    super
  end

  private

  def wrap_execution(&block)
    answer = Served.instance.request do |env|
      @request.set_header("rack.hijack", env.fetch("rack.hijack"))
      super(&block)
    end
    raise answer.error if answer.error

    @response.stream.seen = answer.response.body.to_s
  end
end

# What a client has got of it.
module Seen
  attr_writer :seen

  def body
    @seen || super
  end
end

# Before the applications of ActionDispatch::IntegrationTest.
module AppOfTheServer
  def app
    lambda do |env|
      answer = Served.instance.request { |of_server| super().call(env.merge("rack.hijack" => of_server.fetch("rack.hijack"))) }
      raise answer.error if answer.error

      [answer.response.code.to_i, answer.response.each_header.to_h, [answer.response.body.to_s]]
    end
  end
end

# Tests of browsers are not these, and need gems.
ActionDispatch::SystemTestCase = Class.new { def self.driven_by(*, **) = nil }
require "abstract_unit"
require "controller/live_stream_test"

if WAY == "served"
  silence_warnings { ActionController::Live.define_method(:new_controller_thread, OF_ITS_OWN) }
  ActionDispatch::Response::Buffer.prepend(Seen)
  ActionController::Live::Buffer.prepend(Seen)
  [ActionController::SSETest, ActionController::LiveStreamTest].each { |tests| tests.prepend(ByTheServer) }
  LiveStreamRouterTest.prepend(AppOfTheServer)
  OURS.each { |name| ActionController::LiveStreamTest.remove_method(name) }
  Minitest.after_run { abort "only #{Served.streams} streams were the server's" if Served.streams < STREAMS }
end
