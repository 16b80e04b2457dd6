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
    Rondo::PubSub.log = nil
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

  # In development the host of Rails is localhost, and all interfaces would be more than it asks for.
  def test_ports_of_the_file_listen_at_the_host_of_the_program
    ["port 0", "tag nil", "port 0, 'localhost'"].each do |text|
      urls = run_handler(config: config(text), Host: "localhost", Port: 0, user_supplied_options: [])
      assert_empty urls.grep_v(%r{\Ahttp://(?:127\.0\.0\.1|\[::1\]):\d+\z})
      assert_equal Rondo::Address.resolve(kind: :tcp, host: "localhost").size, urls.size
    end
  end

  def test_hosts_may_be_other_addresses
    socket = File.join(@folder, "a.sock")
    assert_equal ["unix://#{socket}"], run_handler(Host: socket, Port: 0, user_supplied_options: [:Host])
    assert_equal ["unix://#{socket}"], run_handler(Host: "unix://#{socket}", Port: 0)
    error = assert_raises(Rondo::Error) { run_handler(Host: "ssl://127.0.0.1?cert=none&key=none", Port: 7) }
    assert_match(%r{\Acannot listen on ssl://127\.0\.0\.1:7: }, error.message)
  end

  def test_threads
    error = assert_raises(Rondo::ConfigurationError) { run_handler(Threads: "many", Port: 0) }
    assert_equal 'Threads must be N or MIN:MAX, not "many"', error.message
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

  PLUGIN = <<~RUBY
    Puma::Plugin.create do
      def start(launcher)
        said = HandlerTest.booting
        said << [:start, launcher.binder.ios.size, launcher.phased_restart]
        launcher.events.after_booted { said << [:booted, launcher.connected_ports, Puma.stats_hash[:max_threads]] }
        launcher.events.after_stopped { said << [:stopped] }
        in_background do
          launcher.restart
          launcher.stop
        end
      end
    end
  RUBY

  # A plugin also where the process is the program's.
  def test_plugins
    FileUtils.mkdir_p(File.join(@folder, "puma/plugin"))
    File.write(File.join(@folder, "puma/plugin/of_handler.rb"), PLUGIN)
    $LOAD_PATH.unshift(@folder)
    said = HandlerTest.booting = Queue.new
    path = config("plugin :of_handler\nthreads 1, 3")
    port = nil
    _, log = capture_io do
      @handler.run(HELLO, config: path, Host: "127.0.0.1", Port: 0) { |server| port = server.addresses.first[/\d+\z/].to_i }
    end
    assert_equal [[:start, 0, false], [:booted, [port], 3], [:stopped]], Array.new(said.size) { said.pop }
    assert_nil Puma::Server.current
    assert_match(/^! a plugin asks for a restart: the process is not the server's/, log)
  ensure
    $LOAD_PATH.delete(@folder)
  end

  def test_a_plugin_that_cannot_start
    FileUtils.mkdir_p(File.join(@folder, "puma/plugin"))
    File.write(File.join(@folder, "puma/plugin/not_here.rb"), "Puma::Plugin.create { def start(*) = raise('no luck') }")
    $LOAD_PATH.unshift(@folder)
    error = assert_raises(Rondo::ConfigurationError) { run_handler(config: config("plugin :not_here"), Host: "127.0.0.1", Port: 0) }
    assert_match(/\Aplugin not_here cannot start: no luck/, error.message)
  ensure
    $LOAD_PATH.delete(@folder)
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
