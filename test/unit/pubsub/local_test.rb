# frozen_string_literal: true

# The servers of one process as engines see them, and calls that come before there is a server.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rondo"

class PubsubLocalTest < Minitest::Test
  P = Rondo::PubSub

  # A server that records the calls.
  class Core
    attr_reader :subscribed, :changes

    def initialize
      @subscribed = {}
      @changes = Queue.new
    end

    def observe(block)
      @watcher = block
      :watch
    end

    def change = @changes.empty? ? nil : @changes.pop

    # It has changed, and whoever observes it is told.
    def tell(*change)
      @changes << change
      @watcher.call("", "", nil)
    end

    def subscribe(*words)
      @subscribed[key = Object.new] = words
      key
    end

    def unsubscribe(key) = @subscribed.delete(key)
    def keep(*) = nil
  end

  class Told < P::Engine
    attr_reader :said

    def initialize
      super
      @said = []
    end

    def subscribe(channel, _is_pattern) = @said << "+#{channel}"
    def unsubscribe(channel, _is_pattern) = @said << "-#{channel}"
  end

  def setup
    @a = Core.new
    @b = Core.new
    P.attach(@engine = Told.new)
  end

  def teardown
    P.detach(@engine)
  end

  # A child that the application forks, and that runs a server of its own.
  FORKED = <<~RUBY
    class Told < Rondo::PubSub::Engine
      def subscribe(channel, _pattern)
        $stdout.syswrite("\#{Process.pid == ROOT ? "parent" : "child"} \#{channel}\\n")
        TOLD << channel
      end

      def unsubscribe(*) = nil
      def publish(*) = true
    end

    ROOT = Process.pid
    TOLD = Queue.new
    Rondo::PubSub.attach(Told.new)
    Rondo.subscribe("x") { nil }

    def serve
      server = Rondo::Server.new(->(_env) { [200, {}, []] }, environment: "test", log: Rondo::Logger.new(io: $stderr))
      server.listen("tcp://127.0.0.1:0")
      thread = Thread.new { server.run }
      Timeout.timeout(60) { TOLD.pop }
      yield
      server.stop
      thread.join
    end

    serve do
      child = fork do
        serve { nil }
        exit!(0)
      end
      Process.wait(child)
    end
  RUBY

  def test_the_server_of_a_forked_child_has_interests_of_its_own
    output, = Open3.capture2(RbConfig.ruby, "-I#{File.expand_path("../../../lib", __dir__)}", "-rrondo", "-rtimeout", "-e", FORKED)
    assert_equal "parent x\nchild x\n", output
  end

  def test_a_subscriber_that_comes_as_the_last_one_of_another_server_goes
    serve(@a, @b) do
      @a.tell("c", false, true)
      assert P.flush(30)
      between { @b.tell("c", false, true) }.enable { @a.tell("c", false, false) }
      assert_equal [["c", false]], P.interests
      assert P.flush(30)
      refute_equal "-c", @engine.said.last
    end
    assert_equal "-c", @engine.said.last
  end

  def test_a_server_that_has_left_has_no_subscribers
    serve(@a) do
      @a.tell("c", true, true)
      assert P.flush(30)
    end
    @a.tell("late", false, true)
    assert_empty P.interests
    assert_equal %w[+c -c], @engine.said
  end

  # The error is the signal, and not what is missing.
  def test_a_signal_while_a_server_comes
    P.history("c", size: 0)
    @a.define_singleton_method(:unsubscribe) { |key| super(key || raise(TypeError)) }
    %i[keep observe].each do |step|
      @a.define_singleton_method(step) { |*| raise SignalException, "USR2" }
      assert_equal "SIGUSR2", assert_raises(SignalException) { serve(@a) { nil } }.message
      @a.singleton_class.remove_method(step)
      refute_predicate P, :serving?
    end
  end

  # The server has not come to tell it yet.
  def test_an_engine_learns_of_a_subscriber_before_it_gets_a_message
    @engine.define_singleton_method(:publish) { |channel, _message| @said << "#{channel}!" }
    serve(@a) do
      @a.changes << ["c", false, true]
      assert P.publish("c", "x", @engine)
      assert_equal %w[+c c!], @engine.said
    end
  end

  def test_what_no_server_would_take_is_said_at_once
    { as: [ArgumentError, :json], since: [TypeError, 1.5] }.each do |name, (error, value)|
      assert_raises(error) { Rondo.subscribe("c", name => value) { nil } }
    end
    [-1, 1 << 64, Time.at(-1)].each { |id| assert_raises(ArgumentError) { Rondo.subscribe("c", since: id) { nil } } }
    [-1, Float::INFINITY, Float::NAN, 1 << 40].each { |ttl| assert_raises(ArgumentError) { P.history("c", size: 1, ttl: ttl) } }
    serve(@a) { assert_empty @a.subscribed }
  end

  # As in the hub.
  def test_of_patterns_the_newest_rule_holds
    [["r:*", 1], ["r:a*", 2]].each { |name, size| P.history(name, match: :redis, size: size) }
    assert_equal [2, 1], sizes("r:ab", "r:b")
    P.history("r:*", match: :redis, size: 3)
    assert_equal [2, 3], sizes("r:ab", "r:b"), "a changed rule has become newer"
    [0, 4].each { |size| P.history("r:*", match: :redis, size: size) }
    assert_equal [4, 4], sizes("r:ab", "r:b"), "a rule that began again is an old one"
    P.history("r:ab", size: 5)
    P.history("r:?b", match: :redis, size: 6)
    assert_equal [5, 6], sizes("r:ab", "r:bb")
  ensure
    %w[r:* r:a* r:?b].each { |name| P.history(name, match: :redis, size: 0) }
    P.history("r:ab", size: 0)
  end

  def test_a_name_is_its_bytes_as_they_were
    Rondo.subscribe(name = +"gr\u00fcn") { nil }
    Rondo.subscribe(name.b, since: Time.at(2)) { nil }
    name << "!"
    serve(@a) { assert_equal([["gr\u00fcn", 2_000_000]], @a.subscribed.values.map { |words| words.values_at(0, 3) }) }
    assert Rondo.unsubscribe("gr\u00fcn".b)
    refute Rondo.unsubscribe("gr\u00fcn")
  end

  private

  def sizes(*channels)
    channels.map { |channel| P.rule_of(channel).messages }
  end

  def serve(core, *others, &block)
    P.serve(core) { others.empty? ? yield : serve(*others, &block) }
  end

  # Runs after a loss was noticed and before it is reported.
  def between
    TracePoint.new(:call) { |call| yield if call.method_id == :interest && call.self.equal?(P) }
  end
end
