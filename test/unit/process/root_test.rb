# frozen_string_literal: true

# Blocks of the process that has called Rondo.start, before it has, and in a process that has not.
# SPDX-License-Identifier: MIT

require "test_helper"
require "stringio"
require "rondo"
require "rondo/config/settings"
require "rondo/pubsub/hub"

class RootTest < Minitest::Test
  Root = Rondo::Root

  # Other tests may have served in this process.
  def setup
    Root.close
  end

  def teardown
    Root.close
  end

  def test_what_is_refused
    assert_raises(ArgumentError) { Root.run }
    assert_raises(ArgumentError) { Root.run_every(0) { nil } }
    assert_raises(ArgumentError) { Root.run_every(1, -1) { nil } }
    assert_raises(TypeError) { Root.run_after("1") { nil } }
    assert_raises(ArgumentError) { Root.subscribe("a") }
    assert_raises(ArgumentError) { Root.subscribe("") { nil } }
    assert_raises(TypeError) { Root.subscribe(5) { nil } }
    assert_raises(ArgumentError) { Root.subscribe("a", match: :glob) { nil } }
    refute_predicate Root, :any?
  end

  def test_handles
    job = Root.run_every(10) { nil }
    assert_predicate Root, :any?
    refute_predicate job, :over?
    assert_equal [true, false], [job.cancel, job.cancel]
    assert_predicate job, :over?
    assert Root.subscribe("a") { nil }
    assert_equal [true, false], [Root.unsubscribe("a"), Root.unsubscribe("a")]
  end

  # Another thread may cancel it when it is about to be called.
  def test_a_job_that_is_cancelled_as_it_begins
    [1, 2, 0].each do |runs|
      called = 0
      job = Root::Job.new(0, runs, -> { called += 1 })
      assert job.cancel
      job.call
      assert_equal [true, 1], [job.over?, called]
    end
  end

  # They are the server's then.
  def test_a_process_that_serves_alone_keeps_no_jobs
    Root.pass_on
    tasks = Array.new(10) { Root.run { nil } }
    refute_predicate Root, :any?
  ensure
    tasks&.each(&:cancel) # a server of the next test would begin them
  end

  def test_another_process
    Root.run { nil }
    Root.forget
    refute_predicate Root, :any?
    assert_equal "this process has not called Rondo.start", assert_raises(Rondo::Error) { Root.run { nil } }.message
    assert_raises(Rondo::Error) { Root.subscribe("a") { nil } }
  end

  # As in the master, with a limit.
  def test_a_thread_calls_them
    hub = Rondo::Hub.new(Rondo::Settings::Resolved.new, Rondo::Scoreboard.new(1), log: Rondo::Logger.new(silent: true))
    called = Queue.new
    Root.run { called << Thread.current.name }
    Root.start(hub, Rondo::Logger.new(silent: true), 2)
    assert_equal "rondo root", called.pop
    Root.subscribe("new*") { called << :of_another_channel }
    Root.subscribe("new?", true) { |*given| called << given }
    hub.keep(Rondo::PubSub::Rule.new("news", false, 5, 0, 0)) # which is nothing that a block is told
    eventually_heard(called) { hub.publish("news", "words") }
    called.clear
    %i[siblings root].each { |reach| hub.publish("news", reach.to_s, reach) }
    assert_equal %w[news root], called.pop
    waiting = Array.new(2) { Root.run_after(3_600_000) { nil } }
    assert_raises(Rondo::TaskLimitError) { Root.run { nil } }
    waiting.first.cancel
    assert Root.run { called << :again }
    called.pop until called.empty?
  ensure
    Root.close
    hub&.close
  end

  def test_a_block_that_ends_its_thread
    out = StringIO.new
    log = Rondo::Logger.new(io: out)
    called = Queue.new
    Root.run { Thread.exit }
    Root.run_after(1) { called << Thread.current.name }
    Root.start(nil, log, 10)
    assert_equal "rondo root", called.pop
    assert_match(/^! Rondo::Root: a block has ended the thread of all blocks; another thread goes on$/, out.string)
    assert_equal 1, out.string.lines.size
  ensure
    Root.close
  end

  # Somebody publishes all the time; the other block gets what this one does not.
  def test_a_block_that_takes_the_place_of_another
    hub = Rondo::Hub.new(Rondo::Settings::Resolved.new, Rondo::Scoreboard.new(1), log: Rondo::Logger.new(silent: true))
    heard = Queue.new
    Root.start(hub, Rondo::Logger.new(silent: true), 10)
    Root.subscribe("news") { |*given| heard << given }
    eventually_heard(heard) { hub.publish("news", "words") }
    Thread.pass until hub.stats[:queue_bytes].zero?
    heard.clear
    200.times do |number|
      Root.subscribe("news") { |_, message| heard << message }
      hub.publish("news", number.to_s)
    end
    texts = []
    texts << heard.pop until texts.last == "199"
    assert_equal (0...200).map(&:to_s), texts.grep(/\A\d+\z/)
  ensure
    Root.close
    hub&.close
  end

  # Who reaps children takes the status of all: a block would miss those of its own.
  def test_no_block_begins_while_children_are_reaped
    called, held, over = Array.new(3) { Queue.new }
    Root.start(nil, Rondo::Logger.new(silent: true), 10)
    Root.unless_busy do
      Root.run { called << :first }
      1000.times { Thread.pass }
      assert_empty called
    end
    assert_equal :first, called.pop
    Root.run { (held << true) && over.pop }
    held.pop
    assert_nil(Root.unless_busy { :reaped })
    over << true
    Thread.pass until Root.unless_busy { :reaped }
  ensure
    Root.close
  end

  # The hub learns of the subscription soon.
  def eventually_heard(called)
    loop do
      yield
      IO.select(nil, nil, nil, 0.01) if called.empty?
      given = called.empty? ? nil : called.pop
      break assert_equal(%w[news words], given) if given
    end
  end
end
