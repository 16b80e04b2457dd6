# frozen_string_literal: true

# Who waits for an engine: answers, deadlines, limits, and the way from the master to a worker that does not read.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/cluster/message_socket"
require "rondo/process/process_loop"
require "rondo/pubsub/confirms"
require "stringio"
require "timeout"

class ConfirmsTest < Minitest::Test
  PATIENCE = 60
  Confirms = Rondo::PubSub::Confirms

  def setup
    @confirms = Confirms.new
    @log = StringIO.new
    Rondo::PubSub.log = Rondo::Logger.new(io: @log)
  end

  def teardown
    Rondo::PubSub.log = nil
  end

  # The id of a message, that the engine has it, that it refused it, and that it cannot say.
  RESULTS = [1_795_000_000_000_000, true, false, :unable].freeze

  def test_results_are_the_same_as_words
    RESULTS.each { |result| assert_equal result, Confirms.value(Confirms.word(result)) }
  end

  def test_who_waits_gets_the_answer
    waits = RESULTS.map { @confirms.add(PATIENCE, nil) }
    threads = waits.map { |wait| Thread.new { @confirms.await(wait) } }
    words = waits.zip(RESULTS).map { |wait, result| "#{wait.token}:#{Confirms.word(result)}" }
    @confirms.resolve_all(words.shuffle(random: Random.new(1)).join(" "))
    assert_equal RESULTS, threads.map(&:value)
  end

  def test_an_answer_may_come_before_somebody_waits
    wait = @confirms.add(PATIENCE, nil)
    @confirms.resolve(wait.token, 7)
    assert_equal 7, @confirms.await(wait)
  end

  # Who was answered leaves later, and takes nobody else's place.
  def test_a_token_is_not_used_again_at_once
    first = @confirms.add(PATIENCE, nil)
    @confirms.resolve(first.token, 1)
    second = @confirms.add(PATIENCE, nil)
    refute_equal first.token, second.token
    assert_equal 1, @confirms.await(first)
    @confirms.resolve(second.token, 2)
    assert_equal 2, @confirms.await(second)
  end

  # The program that a master becomes by exec has its process id.
  def test_an_answer_to_the_program_before_is_for_nobody
    before = Array.new(2) { srand(1) && Confirms.new.add(PATIENCE, nil) }
    now = Confirms.new
    wait = now.add(PATIENCE, nil)
    before.each { |one| now.resolve(one.token, 1) }
    assert_nil wait.result
    refute_equal(*before.map(&:token))
  ensure
    srand
  end

  def test_tokens_go_round_and_keep_their_width
    confirms = Confirms.new(last: 0xffff_fffd)
    waits = Array.new(4) { confirms.add(PATIENCE, nil) }
    assert_equal [0xffff_fffe, 0xffff_ffff, 0, 1], waits.map(&:token)
    waits.each { |wait| assert_equal [Process.pid, wait.token], Confirms.read_note(confirms.note(wait)) }
    assert_equal [16], waits.map { |wait| confirms.note(wait).bytesize }.uniq
  end

  def test_no_answer_in_time_is_false
    wait = @confirms.add(0, nil)
    refute @confirms.await(wait)
    @confirms.resolve(wait.token, true) # too late, and for nobody
    heard = Queue.new
    @confirms.add(0.001, ->(result) { heard << result })
    refute Timeout.timeout(PATIENCE) { heard.pop }
  end

  def test_blocks_are_called_once_each_and_an_error_of_one_ends_no_other
    heard = Queue.new
    bad = @confirms.add(PATIENCE, ->(_) { raise "out of a block" })
    waits = Array.new(50) { |n| @confirms.add(PATIENCE, ->(result) { heard << [n, result] }) }
    @confirms.add(PATIENCE, ->(_) { heard << :never }) # has a deadline far away
    @confirms.resolve(bad.token, true)
    waits.each { |wait| 2.times { @confirms.resolve(wait.token, wait.token) } }
    assert_equal(waits.each_with_index.map { |wait, n| [n, wait.token] }, Timeout.timeout(PATIENCE) { Array.new(50) { heard.pop } })
    assert_empty heard
    assert_match(/the block of a published message: .*out of a block/, @log.string)
  end

  # What they raise is no StandardError.
  def test_blocks_that_call_themselves_for_ever_end_no_thread
    heard = Queue.new
    endless = ->(result) { endless.call(result) }
    bad = Array.new(3) { @confirms.add(PATIENCE, endless) }
    last = @confirms.add(PATIENCE, ->(result) { heard << result })
    [*bad, last].each { |wait| @confirms.resolve(wait.token, 7) }
    assert_equal 7, Timeout.timeout(PATIENCE) { heard.pop }
    assert_match(/the block of a published message: .*SystemStackError/m, @log.string)
  end

  # ---- blocks that take long ----

  def test_a_slow_block_delays_no_other_and_is_named
    gate, heard = Queue.new, Queue.new
    confirms = Confirms.new(slow: 0.01)
    slow = confirms.add(PATIENCE, ->(_) { gate.pop }) # this line
    line = __LINE__ - 1
    others = Array.new(3) { |n| confirms.add(PATIENCE, ->(_) { heard << n }) }
    [slow, *others].each { |wait| confirms.resolve(wait.token, true) }
    confirms.add(0.01, ->(result) { heard << result })
    assert_equal [0, 1, 2, false], Timeout.timeout(PATIENCE) { Array.new(4) { heard.pop } }.sort_by(&:to_s)
    named = /^! publish: the block at \S*confirms_test.rb:#{line} takes more than 0.01 s/
    Timeout.timeout(PATIENCE) { Thread.pass until @log.string.match?(named) }
    assert_equal 1, @log.string.scan(named).size, @log.string
  ensure
    gate.close
  end

  def test_blocks_that_do_not_return_are_limited
    gate, began, heard = Queue.new, Queue.new, Queue.new
    threads = Thread.list
    confirms = Confirms.new(slow: 0.01)
    stuck = Array.new(Confirms::Blocks::MOST + 1) { |n| confirms.add(PATIENCE, ->(_) { (began << n) && gate.pop }) }
    stuck.each { |wait| confirms.resolve(wait.token, true) }
    assert_equal((0...Confirms::Blocks::MOST).to_a, Timeout.timeout(PATIENCE) { Array.new(Confirms::Blocks::MOST) { began.pop } })
    (Confirms::MOST - 1).times { |n| confirms.resolve(confirms.add(PATIENCE, ->(_) { heard << n }).token, true) }
    assert_nil confirms.add(PATIENCE, nil), "one of those who are stuck, and all others, wait for their blocks"
    assert_equal Confirms::Blocks::MOST, Thread.list.count { |thread| thread.name == Confirms::Blocks::THREAD && threads.none?(thread) }
    assert_empty heard
    gate.close
    assert_equal (0...(Confirms::MOST - 1)).to_a, Timeout.timeout(PATIENCE) { Array.new(Confirms::MOST - 1) { heard.pop } }.sort
    assert confirms.add(PATIENCE, nil)
  ensure
    gate.close
  end

  def test_an_earlier_deadline_that_comes_later_is_kept
    heard = Queue.new
    @confirms.add(3600, ->(_) { heard << :late })
    @confirms.add(0.01, ->(_) { heard << :early })
    assert_equal :early, Timeout.timeout(PATIENCE) { heard.pop }
  end

  def test_no_more_wait_than_allowed
    waits = Array.new(Confirms::MOST) { @confirms.add(PATIENCE, nil) }
    assert waits.all?
    assert_nil @confirms.add(PATIENCE, nil)
    @confirms.drop(waits.first)
    assert @confirms.add(PATIENCE, nil)
  end

  def test_who_is_interrupted_waits_no_more
    wait = @confirms.add(PATIENCE, nil)
    thread = Thread.new { @confirms.await(wait) }
    Thread.pass until thread.stop?
    thread.kill.join
    (Confirms::MOST - 1).times { assert @confirms.add(PATIENCE, nil) }
    assert @confirms.add(PATIENCE, nil)
  end

  def test_what_confirm_may_be
    assert_equal [Confirms::DEFAULT, 0, 1.5, 3600], [true, 0, 1.5, 3600].map { |option| Confirms.seconds(option) }
    [-1, 3601, Float::NAN].each { |option| assert_raises(ArgumentError) { Confirms.seconds(option) } }
    ["1", :yes, []].each { |option| assert_raises(TypeError) { Confirms.seconds(option) } }
    assert_raises(ArgumentError) { Rondo.publish("c", "m", wrong: 1) }
  end

  # It is no StandardError. Nobody waits for an answer then.
  def test_an_engine_that_cannot_be_loaded_leaves_nobody_waiting
    engine = Class.new(Rondo::PubSub::Engine) do
      def confirms? = true
      def publish(*) = raise(LoadError, "no such library")
    end.new
    confirms = Rondo::PubSub.confirms
    before = confirms.instance_variable_get(:@waits).size
    assert_raises(LoadError) { Rondo.publish("c", "m", engine, confirm: 1) }
    assert_equal before, confirms.instance_variable_get(:@waits).size
  end

  # A Hash without braces was a message before there were options, and still is.
  def test_a_hash_without_braces_is_a_message
    engine = Class.new do
      attr_reader :got

      def subscribe(_, _); end
      def unsubscribe(_, _); end
      def publish(*words) = @got = words
    end.new
    assert Rondo.publish("c", { a: 1 }, engine)
    assert_equal ["c", '{"a":1}'], engine.got
    refute Rondo.publish("c", confirm: 1), "no server runs here"
    error = assert_raises(Rondo::Error) { Rondo.publish("c", "m", engine, confirm: 1) }
    assert_match(/cannot say that it has a message/, error.message)
  end

  # ---- from the master to a worker ----

  def test_a_worker_that_does_not_read_gets_everything_later_and_delays_nobody
    own, other = Rondo::MessageSocket.pair
    loop = Rondo::ProcessLoop.new(Rondo::Logger.new(io: @log))
    pid = Process.pid + 1
    routes = Confirms::Routes.new(loop) { |asked| own if asked == pid }
    ended = false
    thread = Thread.new { loop.run_until { ended } }
    5000.times { |token| routes.answer(format("%<pid>08x%<token>08x", pid: pid, token: token), token.odd? || token) }
    routes.answer(format("%<pid>08x%<token>08x", pid: pid + 1, token: 1), true) # a worker that is gone
    heard = []
    Timeout.timeout(PATIENCE) { heard.concat(other.receive[:answers].split) while heard.size < 5000 }
    assert_equal((0...5000).map { |token| "#{token}:#{token.odd? ? "+" : token}" }, heard)
  ensure
    loop.post { ended = true }
    thread.join
    [own, other].each(&:close)
  end

  # The master becomes another program: its loop has ended.
  def test_a_loop_that_does_not_turn_any_more
    own, other = Rondo::MessageSocket.pair
    pid = Process.pid + 1
    routes = Confirms::Routes.new(Rondo::ProcessLoop.new(Rondo::Logger.new(io: @log))) { |asked| own if asked == pid }
    heard = []
    reader = Thread.new { heard.concat(other.receive[:answers].split) while heard.size < 5000 }
    2500.times do |half|
      routes.answer(format("%<pid>08x%<token>08x", pid: pid, token: half), half)
      routes.answer(format("%<pid>08x%<token>08x", pid: pid, token: half + 2500), true)
    end
    routes.send_now(PATIENCE)
    assert reader.join(PATIENCE)
    assert_equal((0...2500).flat_map { |half| ["#{half}:#{half}", "#{half + 2500}:+"] }, heard)
    routes.send_now(PATIENCE) # nothing is left
  ensure
    reader&.kill
    [own, other].each(&:close)
  end

  def test_the_masters_own_messages_are_answered_there
    wait = Rondo::PubSub.confirms.add(PATIENCE, nil)
    Confirms::Routes.new(nil) { flunk "no worker" }.answer(Rondo::PubSub.confirms.note(wait), 12)
    assert_equal 12, Rondo::PubSub.confirms.await(wait)
  end

  def test_a_forked_process_has_its_own
    before = Rondo::PubSub.confirms
    pid = fork { exit!(Rondo::PubSub.confirms.equal?(before) ? 1 : 0) }
    _, status = Process.wait2(pid)
    assert_equal 0, status.exitstatus
    assert_same before, Rondo::PubSub.confirms
  end

  def test_numbers_are_those_of_the_core
    header = File.read(File.expand_path("../../../ext/rondo/pubsub/relay.h", __dir__))
    assert_includes header, "RD_RELAY_CONFIRM_NOTE = #{Rondo::PubSub::RelayFrames::NOTE_BYTES},"
    assert_includes header, "RD_RELAY_CONFIRM = #{Rondo::PubSub::RelayFrames::CONFIRM} "
    assert_equal Rondo::PubSub::RelayFrames::NOTE_BYTES, @confirms.note(@confirms.add(1, nil)).bytesize
  end
end
