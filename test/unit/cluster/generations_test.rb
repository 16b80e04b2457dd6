# frozen_string_literal: true

# Which generation of the code is used: a table of messages from molds and workers, and their effects. Molds are
# sockets; no process is started.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/fake_cluster"

class GenerationsTest < Minitest::Test
  # Like the end of a process that has ended.
  Status = Struct.new(:exitstatus, :termsig) do
    def signaled? = !termsig.nil?
  end
  KILLED = Status.new(nil, 9)

  def run
    Rondo::ProcessLoop.stub(:now, -> { @cluster&.now || 0.0 }) do
      Process.stub(:kill, ->(name, pid) { (@killed ||= []) << "#{name} #{pid}" }) { super }
    end
  end

  def setup
    @cluster = FakeCluster.new
    @peers = {}
    @started = []
    @generations = Rondo::Generations.new(@cluster, { words: [], folder: "/" })
  end

  def teardown
    @cluster.end
  end

  # ---- events, as words ----

  # A mold with that number, which is loading.
  def start(number)
    raise Rondo::Error, "cannot start a mold: no memory" if @no_memory

    @started << number
    socket, @peers[number] = @cluster.pair(number.to_s)
    Rondo::MoldHandle.new(generation: number, pid: 100 + number, socket: socket)
  end

  def advance(&block)
    Rondo::MoldHandle.stub(:start, ->(number, _) { start(number) }) { @generations.advance(&block) }
  end

  def ready(number)
    @peers[number].notify(:ready, threads: "")
    listen(number)
  end

  # With plugins.
  def plugged(number)
    @peers[number].notify(:ready, threads: "", plugins: 1)
    listen(number)
  end

  def fails(number)
    @peers[number].notify(:failed, message: "no luck")
    listen(number)
  end

  # As the loop does when a socket is readable.
  def listen(number)
    mold = @generations.molds.find { |each| each.generation == number }
    @generations.send(:receive_from, mold) if mold
  end

  def dies(number)
    @generations.ended(100 + number, KILLED)
  end

  def worker_fails(number)
    mold = @generations.molds.find { |each| each.generation == number }
    @generations.worker_failed(mold, "no boot")
  end

  def reconciled
    @generations.reconciled
  end

  def too_long
    @cluster.now += 61
    @cluster.loop.pass
  end

  def fork
    Rondo::MoldHandle.stub(:start, ->(number, _) { start(number) }) { @generations.mold_to_fork }
  end

  def generation_of(mold)
    mold&.generation
  end

  # Words of the events; numbers of the current generation and of the one before; the calls to the cluster.
  TABLE = {
    "it loads" => ["advance", [nil, nil], []],
    "it is ready" => ["advance, ready 0", [0, nil], ["reconcile"]],
    "the first one fails" => ["advance, fails 0", [nil, nil], ["cannot start: no luck"]],
    "the first one dies" => ["advance, dies 0", [nil, nil],
                             ["cannot start: the mold ended with SIGKILL while it loaded the application"]],
    "the first one takes too long" => ["advance, too_long", [nil, nil],
                                       ["cannot start: its application did not load within 60 s"]],
    "the first worker of all fails" => ["advance, ready 0, worker_fails 0", [0, nil], ["reconcile", "cannot start: no boot"]],
    "a worker fails later" => ["advance, ready 0, reconciled, worker_fails 0", [0, nil], ["reconcile"]],
    "the next one loads" => ["advance, ready 0, reconciled, advance", [0, nil], ["reconcile"]],
    "the next one is ready" => ["advance, ready 0, reconciled, advance, ready 1", [1, 0], %w[reconcile reconcile]],
    "the next one serves" => ["advance, ready 0, reconciled, advance, ready 1, reconciled", [1, nil], %w[reconcile reconcile]],
    "the next one fails" => ["advance, ready 0, reconciled, advance, fails 1", [0, nil], ["reconcile", "generation failed"]],
    "the next one dies" => ["advance, ready 0, reconciled, advance, dies 1", [0, nil], ["reconcile", "generation failed"]],
    "the next one takes too long" => ["advance, ready 0, reconciled, advance, too_long", [0, nil], ["reconcile", "generation failed"]],
    "a worker of the next one fails" => ["advance, ready 0, reconciled, advance, ready 1, worker_fails 1", [0, nil],
                                         ["reconcile", "reconcile", "generation failed"]],
    "a worker of the one before fails" => ["advance, ready 0, reconciled, advance, ready 1, worker_fails 0", [1, 0],
                                           %w[reconcile reconcile]],
    "asked for twice" => ["advance, ready 0, reconciled, advance, advance, ready 1", [1, 0], %w[reconcile reconcile]],
    "the one before dies meanwhile" => ["advance, ready 0, reconciled, advance, dies 0, ready 1", [1, nil], %w[reconcile reconcile]],
    "the one before dies afterwards" => ["advance, ready 0, reconciled, advance, ready 1, dies 0", [1, nil], %w[reconcile reconcile]],
    "plugins begin when all workers serve" => ["advance, plugged 0, reconciled", [0, nil], ["reconcile", "booted 0"]],
    "plugins of the one before end first" => ["advance, plugged 0, reconciled, advance, plugged 1, reconciled, dies 0", [1, nil],
                                              ["reconcile", "booted 0", "reconcile", "booted 1"]],
    "plugins of the one before are ending" => ["advance, plugged 0, reconciled, advance, plugged 1, reconciled", [1, nil],
                                               ["reconcile", "booted 0", "reconcile"]],
    "plugins of one that fails do not begin" => ["advance, plugged 0, reconciled, advance, plugged 1, worker_fails 1, dies 1", [0, nil],
                                                 ["reconcile", "booted 0", "reconcile", "generation failed", "booted 0"]],
    "then a worker fails" => ["advance, ready 0, reconciled, advance, ready 1, dies 0, worker_fails 1", [1, nil], %w[reconcile reconcile]]
  }.freeze

  TABLE.each do |title, (words, generations, told)|
    define_method("test_#{title.tr(" ,", "__")}") do
      words.split(", ").each { |word| word.split.then { |name, number| number ? send(name, number.to_i) : send(name) } }
      assert_equal generations, [@generations.current, @generations.previous].map { |mold| generation_of(mold) }
      assert_equal told, @cluster.done
    end
  end

  # ---- a mold that is gone ----

  def with_one_that_died
    advance
    ready(0)
    reconciled
    dies(0)
  end

  def test_it_is_started_again_when_a_worker_is_needed
    with_one_that_died
    assert_nil fork
    assert_equal [0, 0], @started
    assert_nil fork # it is loading
    ready(0)
    assert_equal 0, fork.generation
  end

  def test_it_is_not_started_again_and_again
    with_one_that_died
    waits = Array.new(4) do
      before = @cluster.now
      @cluster.now += 0.5 until fork || @started.size > 1
      @started.pop
      dies(0)
      @cluster.now - before
    end
    assert_equal [0, 1, 5, 30], waits.map(&:round)
  end

  def test_one_that_cannot_be_started_again
    with_one_that_died
    @no_memory = true
    assert_nil fork
    @no_memory = false
    assert_nil fork # not at once
    assert_equal [0], @started
    @cluster.now += 1
    fork
    assert_equal [0, 0], @started
    assert_match(/cannot start a mold: no memory/, @cluster.log.join)
  end

  def test_one_that_fails_when_it_is_started_again
    with_one_that_died
    fork
    fails(0)
    assert_equal 0, @generations.current.generation
    refute_predicate @generations.current, :alive?
    assert_match(/cannot be started again: no luck/, @cluster.log.join)
    refute_includes @cluster.done, "generation failed"
  end

  # ---- a whole restart ----

  def test_a_generation_for_another_program_is_not_used_here
    advance
    ready(0)
    reconciled
    called = 0
    advance { called += 1 }
    assert_predicate @generations, :restarting?
    ready(1)
    assert_equal 1, called
    assert_equal 0, @generations.current.generation
    taken = @generations.detach_next
    assert_equal 1, taken.generation
    @generations.refuse(taken)
    assert_equal [0], @generations.molds.map(&:generation)
  end

  def test_what_another_program_had
    molds = [3, 2].map { |number| start(number).tap { |mold| mold.state = :ready } }
    @generations.adopt(*molds)
    worker_fails(3)
    assert_equal [2, nil], [@generations.current, @generations.previous].map { |mold| generation_of(mold) }
    advance
    assert_equal 3, @started.last
  end

  # ---- ends ----

  def test_one_that_does_not_go
    advance
    ready(0)
    reconciled
    advance
    ready(1)
    reconciled
    @cluster.now += 29
    @cluster.loop.pass
    assert_nil @killed
    @cluster.now += 2
    @cluster.loop.pass
    assert_equal ["KILL 100"], @killed
    assert dies(0), "it is known until it has ended"
    refute dies(0)
  end

  # The last hook comes when those of all its workers have had their time.
  def test_one_that_calls_hooks_for_many_workers
    advance
    @peers[0].notify(:ready, threads: "", hooks: "after_worker_shutdown,after_stopped")
    listen(0)
    mold = @generations.current
    40.times { @generations.call_hook(mold, "after_worker_shutdown") }
    @peers[0].notify(:called)
    listen(0)
    @generations.all_ended?
    [[30 + (39 * 2), nil], [1, ["KILL 100"]]].each do |seconds, killed|
      @cluster.now += seconds
      @cluster.loop.pass
      assert_equal [killed], [@killed]
    end
  end

  def test_one_that_hangs
    advance
    ready(0)
    @generations.hung(@generations.current)
    assert_equal ["KILL 100"], @killed
    refute dies(7), "somebody else's"
  end

  def test_all_end
    advance
    ready(0)
    advance
    @generations.stop
    assert_empty @generations.molds
    assert_equal ["KILL 101"], @killed # it is loading, so it would not listen
  end
end
