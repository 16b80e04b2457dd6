# frozen_string_literal: true

# How the options of rackup and Rails are read.
# SPDX-License-Identifier: MIT

require "test_helper"
require "socket"
require "tmpdir"
require "rondo/handler"

class HandlerTest < Minitest::Test
  HELLO = ->(_env) { [200, {}, ["hello"]] }

  class << self
    # @return [Rondo::Handler] for a configuration file
    attr_accessor :booting
  end

  def setup
    @handler = Module.new.extend(Rondo::Handler)
    @folder = Dir.mktmpdir
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  # Runs until the block returns.
  # @return [Array<String>] where it listened
  def run_handler(**options)
    urls = nil
    capture_io do
      @handler.run(HELLO, config: "-", **options) do |server|
        urls = server.addresses
        yield server if block_given?
        @handler.shutdown
      end
    end
    urls
  end

  def config(text)
    path = File.join(@folder, "own.rb")
    File.write(path, text)
    path
  end

  def test_host_and_port
    assert_match(%r{\Ahttp://127\.0\.0\.1:\d+\z}, run_handler(Host: "127.0.0.1", Port: 0).fetch(0))
    assert_match(%r{\Ahttp://127\.0\.0\.1:\d+\z}, run_handler(Host: "127.0.0.1", Port: "0").fetch(0))
  end

  def test_what_was_typed_wins_over_the_file
    path = config("bind 'tcp://127.0.0.2:0'")
    typed = run_handler(config: path, Host: "127.0.0.1", Port: 0, user_supplied_options: [:Port])
    refute_match(/127\.0\.0\.2/, typed.join)
    made_up = run_handler(config: path, Host: "127.0.0.1", Port: 0, user_supplied_options: [])
    assert_match(%r{\Ahttp://127\.0\.0\.2:}, made_up.fetch(0))
  end

  def test_hooks_of_the_file
    path = config("after_booted { $handler_hooks = [:booted] }\nafter_stopped { $handler_hooks << :stopped }")
    run_handler(config: path, Host: "127.0.0.1", Port: 0)
    assert_equal %i[booted stopped], $handler_hooks # rubocop:disable Style/GlobalVars
  end

  def test_a_hook_that_raises_is_said
    path = config("after_booted { raise 'no hook' }")
    _, err = capture_io do
      @handler.run(HELLO, config: path, Host: "127.0.0.1", Port: 0) { @handler.shutdown }
    end
    assert_match(/^! after_booted raised at .*own\.rb:1: no hook \(RuntimeError\)$/, err)
  end

  def test_each_run_opens_its_own_engine
    path = config("pubsub_engine { Rondo::PubSub::Engine.new }")
    engines = Array.new(2) do
      found = nil
      run_handler(config: path, Host: "127.0.0.1", Port: 0) { found = Rondo::PubSub.default }
      found
    end
    assert_equal [Rondo::PubSub::Engine] * 2, engines.map(&:class)
    refute_same(*engines)
    assert_same Rondo::PubSub::CLUSTER, Rondo::PubSub.default
  end

  def test_it_serves
    thread = Thread.new do
      capture = Queue.new
      Thread.current[:capture] = capture
      @handler.run(HELLO, config: "-", quiet: true, Host: "127.0.0.1", Port: 0) { |server| capture << server }
    end
    Thread.pass until thread[:capture]
    server = thread[:capture].pop
    TCPSocket.open("127.0.0.1", server.addresses.first[/\d+\z/].to_i) do |socket|
      socket.write("GET / HTTP/1.0\r\n\r\n")
      assert_match(/hello\z/, socket.read)
    end
    @handler.shutdown
    assert thread.join(30)
  end

  def test_shutdown_while_an_engine_is_opened
    HandlerTest.booting = @handler
    path = config("pubsub_engine { HandlerTest.booting.shutdown || Rondo::PubSub::Engine.new }")
    2.times do # the second time, the server of the first call is there
      thread = Thread.new { @handler.run(HELLO, config: path, quiet: true, Host: "127.0.0.1", Port: 0) }
      assert thread.join(30), "still serving"
    end
  ensure
    @handler.shutdown
  end

  def test_a_shutdown_is_of_one_run
    run_handler(Host: "127.0.0.1", Port: 0)
    @handler.shutdown
    test_it_serves
  end

  def test_shutdown_without_a_server
    assert_nil @handler.shutdown
  end

  def test_valid_options_are_described
    assert_empty %w[Host Port Config] - @handler.valid_options.keys.map { |key| key[/\A\w+/] }
  end
end
