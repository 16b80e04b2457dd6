# frozen_string_literal: true

# The Ruby side of the control server: tokens, the verbs that a process supports, and its pages.
# SPDX-License-Identifier: MIT

require "test_helper"
require "tmpdir"
require "rondo/command/control_client"
require "rondo/config/settings"
require "rondo/process/control"

class ControlTest < Minitest::Test
  Control = Rondo::Control

  # A process that supports two verbs.
  class Process
    attr_reader :stopped

    def stop
      @stopped = true
    end

    def phased_restart
      raise "not today"
    end
  end

  # Raised in the thread that closes.
  class Interrupted < StandardError; end

  def setup
    @board = Rondo::Scoreboard.new(2)
    @process = Process.new
  end

  def opened(token: "t", **options)
    control = Control.new(@board, @process, token: token, log: Rondo::Logger.new(io: @log = StringIO.new), **options)
    control.listen("tcp://127.0.0.1:0")
    control.start
    client = Rondo::ControlClient.new(control.url, token)
    yield client, control
  ensure
    control&.close
  end

  def test_every_verb_has_a_method_or_an_answer
    assert_equal Control::VERBS.keys.sort, (Control::METHODS.keys + Control::OWN).sort
    assert_equal Control::OWN, Control::VERBS.select { |_, row| row[:answers] }.keys
  end

  # Nobody serves here. Requests of several clients at once are published one after the other.
  def test_what_is_published_is_a_body_of_any_length
    require "rondo/pubsub/publisher"
    engine = Class.new(Rondo::PubSub::Engine) { define_method(:publish) { |_, message| (@taken ||= []) << message.bytesize } }.new
    opened(longest: 500_000) do |client, control|
      publisher = Rondo::Publisher.new(control.url, token: "t", timeout: 60)
      error = assert_raises(Rondo::Publisher::Error) { publisher.publish("a", "b") }
      assert_equal [503, 0], [error.status, error.published]
      Rondo::PubSub.default = engine
      sizes = Array.new(16) { |number| Thread.new { publisher.publish("a", "x" * (number * 30_000)) && (number * 30_000) } }.map(&:value)
      assert_equal sizes, engine.instance_variable_get(:@taken).sort
      assert_match(/data of the message is longer than 500000 bytes/, assert_raises(Rondo::Publisher::Error) { publisher.publish("a", "x" * 500_001) }.message)
      assert_equal 400, client.post("/publish").status
    end
  ensure
    Rondo::PubSub.detach(engine)
  end

  def test_tokens
    assert_match(/\A\h{32}\z/, Control.token_of(nil))
    refute_equal Control.token_of(nil), Control.token_of(nil)
    ["", "none"].each { |text| assert_nil Control.token_of(text) }
    assert_equal "a+b/c=", Control.token_of("a+b/c=")
    ["a b", "a\nb", "a\"b", "a\\b", "é", "a" * 513].each do |text|
      assert_raises(Rondo::ConfigurationError, text) { Control.token_of(text) }
    end
  end

  # What a process before has left. A variable that is older names something else.
  def test_a_random_token_goes_along
    { "secret" => "secret", "" => nil, "not one" => nil, "a" * 600 => nil }.each do |text, expected|
      assert_equal [expected], [left("1,#{pipe_with(text)}=x")]
    end
    assert_equal "chosen", left("1,#{pipe_with("secret")}=x", "chosen")
    IO.pipe do |out, into| # empty, and open
      assert_equal ["chosen", nil], [left("1,#{out.fileno}=x", "chosen"), left("1,#{into.fileno}=x")]
      out.autoclose = false # it is closed already
    end
    File.open(__FILE__) { |file| assert_nil left("1,#{file.fileno}=x") }
    %w[1=x 1,99999=x 1,=x].each { |text| assert_nil left(text) }
  end

  # @return [Integer] a descriptor
  def pipe_with(text)
    out, into = IO.pipe
    into.write(text)
    into.close
    out.autoclose = false
    out.fileno
  end

  def left(variable, chosen = nil)
    ENV[Control::VARIABLE] = variable
    Control.send(:token_left, chosen)
  ensure
    ENV.delete(Control::VARIABLE)
  end

  # The next settings may have none: then there is a random one again, and not the one that somebody took away.
  def test_a_chosen_token_does_not_go_along
    { true => nil, false => "mine" }.each do |chosen, expected|
      control = Control.new(@board, @process, token: "mine")
      control.listen("tcp://127.0.0.1:0", chosen: chosen)
      control.hand_on
      pipe = ENV.fetch(Control::VARIABLE)[/,(\d+)/, 1]
      assert_equal [expected, [false]], [Control.send(:token_left, nil), there(pipe)]
    ensure
      control&.close
      open_without_url # closes what was handed on
    end
  end

  def test_nothing_is_left_where_the_url_is_gone
    Dir.mktmpdir do |folder|
      path = File.join(folder, "c")
      control = Control.new(@board, @process, token: "mine")
      control.listen("unix://#{path}")
      control.hand_on
      control.close
      numbers = ENV.fetch(Control::VARIABLE).scan(/\d+/).first(2)
      assert_equal [true] * 3, there(path, *numbers)
      assert_nil open_without_url
      assert_equal [false] * 3, there(path, *numbers)
      refute ENV.key?(Control::VARIABLE)
    end
  end

  # The variable may be older than what has these numbers now.
  def test_what_was_not_left_stays_open
    File.open(__FILE__) do |file|
      UNIXSocket.pair do |one, _other|
        ["#{file.fileno},#{one.fileno}=x", "#{one.fileno},#{file.fileno}=x", "99999,99998=x", "x"].each do |variable|
          ENV[Control::VARIABLE] = variable
          assert_nil open_without_url
          assert_equal [true] * 2, there(file.fileno.to_s, one.fileno.to_s)
        end
      end
    end
  end

  def open_without_url
    Control.open(Rondo::Settings::Resolved.new, @board, @process, log: nil)
  end

  # @return [Array<Boolean>] whether these paths or descriptors exist
  def there(*names)
    names.map { |name| File.exist?(File.expand_path(name, "/proc/self/fd")) }
  end

  def test_verbs_of_the_process
    opened do |client|
      assert client.get("/stop").ok?
      assert client.get("/gc").ok? # answered behind the one before
      assert @process.stopped
      assert_equal [404, "restart not available: the server runs without workers"], client.get("/restart").then { |answer| [answer.status, answer.reason] }
      assert client.get("/phased-restart").ok?
      assert client.get("/gc").ok?
      assert_match(/control server: phased-restart: not today/, @log.string)
    end
  end

  def test_numbers_alone
    opened(data_only: true) do |client|
      assert client.get("/gc-stats").ok?
      assert_equal([404, 404], %w[/stop /gc].map { |path| client.get(path).status })
      assert client.get("/stats").ok?
    end
  end

  def test_workers
    { pid: 7, state: 2, generation: 1, max_threads: 5, busy: 2 }.each { |name, value| @board.set(1, name, value) }
    { pid: 6, state: 3 }.each { |name, value| @board.set(0, name, value) }
    opened(cluster: true) do |client|
      stats = JSON.parse(client.get("/stats").body)
      assert_equal [2, 1, 2, 1], stats.values_at("workers", "phase", "booted_workers", "old_workers")
      worker = stats["worker_status"].last
      assert_equal [7, 1, 1, true], worker.values_at("pid", "index", "phase", "booted")
      assert_equal [3, 2, 5], worker["last_status"].values_at("pool_capacity", "busy_threads", "max_threads")
    end
  end

  def test_accept_queues
    TCPServer.open("127.0.0.1", 0) do |server|
      opened do |client, control|
        control.watch({ "http://a" => server.fileno }, worker: 1)
        assert_equal(["http://a", 1], JSON.parse(client.get("/stats").body)["accept_queues"][0].values_at("url", "worker"))
        control.unwatch
        assert_empty JSON.parse(client.get("/stats").body)["accept_queues"]
      end
    end
  end

  def test_closing
    opened do |client, control|
      control.close
      control.close
      assert_raises(Rondo::ControlClient::Unreachable) { client.get("/live") }
      assert_raises(Rondo::Error) { control.unwatch }
    end
  end

  # It is raised at the wait for the native thread.
  def test_closing_again_after_an_interrupt
    opened do |client, control|
      Thread.handle_interrupt(Interrupted => :never) do
        Thread.current.raise(Interrupted)
        assert_raises(Interrupted) { Thread.handle_interrupt(Interrupted => :on_blocking) { control.close } }
      end
      control.close
      assert_raises(Rondo::ControlClient::Unreachable) { client.get("/live") }
    end
  end

  def test_many_at_once
    opened { |first| opened { |second| assert_equal([true, true], [first, second].map { |client| client.get("/live").ok? }) } }
  end

  # A child that forks and ends normally runs finalizers of the objects that it inherited.
  def test_a_forked_child_does_no_harm
    opened do |client, control|
      pid = fork do
        control.close
        exit!(GC.start ? 1 : 0)
      end
      assert ::Process.wait2(pid)[1].success?
      assert client.get("/live").ok?
    end
  end
end
