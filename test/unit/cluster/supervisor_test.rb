# frozen_string_literal: true

# Which workers are forked, replaced and ended: a table of states, and the supervisor's actions for them; then its
# actions for events.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/fake_cluster"

class SupervisorTest < Minitest::Test
  ROOM = 4

  # The molds of the cluster, as far as the supervisor uses them.
  Generations = Struct.new(:current, :usable, :failed, :hung_ones) do
    def mold_to_fork = usable ? current : nil
    def hung(mold) = (self.hung_ones = [*hung_ones, mold])

    def worker_failed(mold, reason)
      self.failed = [mold.generation, reason]
      false
    end
  end

  def run
    Rondo::ProcessLoop.stub(:now, -> { @cluster&.now || 0.0 }) { super }
  end

  def begin_with(generation: 0, usable: true, **settings)
    @cluster = FakeCluster.new(room: ROOM, **settings)
    @molds = Hash.new { |hash, number| hash[number] = @cluster.mold(number) }
    @generations = Generations.new(@molds[generation], usable)
    @cluster.supervisor = @supervisor = Rondo::Supervisor.new(@cluster)
    @supervisor.generations = @generations
  end

  def teardown
    @cluster&.end
  end

  # @param facts [Symbol] :foreign, forked by another master; :old, to be replaced for its age
  def there_is(name, state, *facts)
    index, generation = name.split(".").map(&:to_i)
    socket, peer = @cluster.pair(name)
    @cluster.workers << peer
    taken = @supervisor.workers.map(&:seat)
    seat = ([index, index + ROOM] - taken).first unless facts.include?(:foreign)
    worker = Rondo::WorkerHandle.new(index: index, seat: seat, mold: @molds[generation], socket: socket,
                                     pid: 10_000 + @supervisor.workers.size, state: state)
    worker.worn_out = "its age" if facts.include?(:old)
    @supervisor.adopt(worker)
    worker
  end

  # ---- states and actions ----

  # Number of slots, generation, workers as "SLOT.GENERATION" with their state; the actions.
  TABLE = {
    "nobody" => [2, 0, [], ["fork 0", "fork 1"]],
    "somebody is missing" => [2, 0, [["1.0", :ready]], ["fork 0"]],
    "some boot" => [2, 0, [["0.0", :booting], ["1.0", :ready]], []],
    "all are there" => [2, 0, [["0.0", :ready], ["1.0", :ready]], ["reconciled"]],
    "older code" => [2, 1, [["0.0", :ready], ["1.0", :ready]], ["fork 0"]],
    "older code, and the first successor boots" => [2, 1, [["0.0", :ready], ["1.0", :ready], ["0.1", :booting]], []],
    "the first successor is ready" => [2, 1, [["0.0", :ready], ["1.0", :ready], ["0.1", :ready]], ["stop 0.0"]],
    "the first one leaves" => [2, 1, [["0.0", :stopping], ["1.0", :ready], ["0.1", :ready]], []],
    "the first one has left" => [2, 1, [["1.0", :ready], ["0.1", :ready]], ["fork 1"]],
    "older code, somebody is missing" => [2, 1, [["1.0", :ready]], ["fork 0"]],
    "code that comes back" => [2, 0, [["0.1", :ready], ["1.0", :ready]], ["fork 0"]],
    "somebody is old" => [2, 0, [["0.0", :ready], ["1.0", :ready, :old]], ["fork 1"]],
    "older code comes before age" => [2, 1, [["0.1", :ready, :old], ["1.0", :ready]], ["fork 1"]],
    "age waits for who boots" => [2, 0, [["0.0", :ready, :old], ["1.0", :booting]], []],
    "one slot too many" => [1, 0, [["0.0", :ready], ["1.0", :ready]], ["close 1", "retire 0.0", "retire 1.0", "stop 1.0"]],
    "its worker boots" => [1, 0, [["0.0", :ready], ["1.0", :booting]],
                           ["close 1", "cover 0.0", "retire 0.0", "retire 1.0", "stop 1.0"]],
    "its worker leaves" => [1, 0, [["0.0", :ready], ["1.0", :stopping]], []],
    "workers of another master" => [2, 1, [["0.0", :ready, :foreign], ["1.0", :ready, :foreign]], ["fork 0"]],
    "one of theirs has a successor" => [2, 1, [["0.0", :ready, :foreign], ["1.0", :ready, :foreign], ["0.1", :ready]],
                                        ["heirs 0.0", "stop 0.0"]],
    "both rows of a slot are in use" => [1, 0, [["0.0", :stopping], ["0.0", :stopping]], []],
    "all leave" => [1, 0, [["0.0", :stopping]], ["fork 0"]]
  }.freeze

  TABLE.each do |title, (count, generation, workers, done)|
    define_method("test_#{title.tr(" ,", "__")}") do
      begin_with(generation: generation)
      workers.each { |name, state, *facts| there_is(name, state, *facts) }
      @cluster.slots.grow(0...[count, *workers.map { |name,| name.to_i + 1 }].max)
      @supervisor.active.concat((0...count).to_a)
      @supervisor.reconcile
      assert_equal done, @cluster.happened
      @supervisor.reconcile # no new action
      assert_empty @cluster.happened - ["reconciled"]
    end
  end

  # ---- the life of a worker ----

  def booted(count = 2, **settings)
    begin_with(**settings)
    @cluster.slots.grow(0...count)
    @supervisor.start(count)
    @cluster.workers.each_with_index { |worker, index| boot(worker, index) }
    @cluster.happened
  end

  def boot(worker, pid)
    worker.notify(:hello, pid: 10_000 + pid)
    worker.notify(:ready)
    @supervisor.receive_from_all
  end

  def replace_all
    booted
    @generations.current = @molds[1]
    @supervisor.reconcile
    steps = [@cluster.happened]
    2.times do |number|
      boot(@cluster.workers.last, 10 + number)
      steps << @cluster.happened
      @supervisor.ended(10_000 + number, nil)
      steps << @cluster.happened
    end
    steps
  end

  def test_one_generation_after_the_other
    assert_equal [["fork 0"], ["stop 0.0"], ["ended 0.0", "fork 1"], ["stop 1.0"], ["ended 1.0", "reconciled"]], replace_all
    assert_equal [[0, 1], [1, 1]], @supervisor.workers.map { |worker| [worker.index, worker.mold.generation] }
    assert_equal [4, 5], @supervisor.workers.map(&:seat)
    assert_equal 2, @cluster.hub.unlinked.size
  end

  # ---- certificates ----

  def test_a_worker_that_has_lost_its_certificates_gets_them_again
    booted
    @cluster.slots.edition = "2"
    @cluster.slots.materials = [Rondo::TLS::Material.new.update(name: "a")]
    one, other = @cluster.workers
    one.notify(:alive, requests: 1, edition: "1")
    other.notify(:alive, requests: 1, edition: "2")
    @supervisor.receive_from_all
    message = one.socket.receive_now
    assert_equal [:certificates, "2", ["a"]], [message.kind, message[:edition], Rondo::TLS.take(message.ios.first).map { |each| each[:name] }]
    assert_empty @cluster.happened
    one.notify(:alive, requests: 2, edition: "2")
    @supervisor.receive_from_all
    assert_empty @cluster.happened
  end

  def test_who_does_not_know_of_editions_is_left_alone
    booted
    @cluster.workers.first.notify(:alive, requests: 1, edition: "")
    @supervisor.receive_from_all
    @cluster.slots.edition = "2"
    @cluster.slots.materials = [Rondo::TLS::Material.new]
    @cluster.workers.first.notify(:alive, requests: 1)
    @supervisor.stop
    @cluster.workers.last.notify(:alive, requests: 1, edition: "1")
    @supervisor.receive_from_all
    assert_equal ["stop 0.0", "stop 1.0"], @cluster.happened
  end

  # The mold may have forked it, and it may serve, before the master goes on. Other workers then read that it listens.
  def test_what_a_new_worker_says_on_the_scoreboard_stays
    begin_with
    board = @cluster.board
    fork_worker = @molds[0].socket.method(:notify)
    @molds[0].socket.define_singleton_method(:notify) do |kind, **fields|
      board.set(fields.fetch(:seat), :listening, 1)
      fork_worker.call(kind, **fields)
    end
    @supervisor.start(1)
    boot(@cluster.workers.last, 0)
    assert_equal [2, 1], [board.get(0, :state), board.get(0, :listening)]
  end

  def test_a_worker_that_no_mold_was_asked_for_leaves_no_row
    begin_with
    @molds[0].socket.define_singleton_method(:notify) { |*, **| false }
    @supervisor.start(1)
    assert_empty @supervisor.workers
    assert_equal [0, 0], [@cluster.board.get(0, :state), @cluster.board.get(0, :started_ms)]
    assert_equal [1], @cluster.hub.unlinked
  end

  def test_states_on_the_scoreboard
    booted
    assert_equal [2, 2], [0, 1].map { |row| @cluster.board.get(row, :state) }
    @supervisor.stop
    assert_equal [3, 3], [0, 1].map { |row| @cluster.board.get(row, :state) }
    assert_equal ["stop 0.0", "stop 1.0"], @cluster.happened
    @supervisor.reconcile # no action
    assert_empty @cluster.happened
  end

  # Consecutive ends; for each of them, the seconds until the next try.
  def test_a_worker_that_dies_again_and_again
    booted(1)
    waits = Array.new(8) do |number|
      @supervisor.ended(10_000 + number, nil)
      before = @cluster.now
      @cluster.now += 0.5 until (@supervisor.reconcile || true) && @cluster.happened.include?("fork 0")
      boot(@cluster.workers.last, number + 1)
      @cluster.now - before
    end
    assert_equal [0, 1, 2, 4, 8, 16, 30, 30], waits.map(&:round)
  end

  # It goes on serving. Seconds until each try.
  def test_a_worker_whose_successor_cannot_boot
    booted(1)
    @supervisor.replace(@supervisor.workers.first, "TERM")
    waits = Array.new(5) do |number|
      before = @cluster.now
      @cluster.now += 0.5 until (@supervisor.reconcile || true) && @cluster.happened.include?("fork 0")
      @cluster.workers.last.notify(:hello, pid: 10_010 + number)
      @supervisor.receive_from_all
      @supervisor.ended(10_010 + number, nil)
      @cluster.now - before
    end
    assert_equal [0, 0, 1, 2, 4], waits.map(&:round)
    assert_equal [true], @supervisor.workers.map(&:ready?)
  end

  def test_a_sibling_serves_a_slot_that_waits
    booted
    @supervisor.ended(10_001, nil)
    3.times do |number|
      boot(@cluster.workers.last, 20 + number)
      @supervisor.ended(10_020 + number, nil)
    end
    assert_includes @cluster.happened, "cover 0.0"
    @supervisor.reconcile
    refute_includes @cluster.happened, "cover 0.0" # once is enough
  end

  def test_one_more_and_one_less
    booted
    assert @supervisor.grow
    assert_equal ["fork 2"], @cluster.happened
    boot(@cluster.workers.last, 2)
    assert_equal ["reconciled"], @cluster.happened
    assert @supervisor.shrink
    assert_equal ["close 2", "retire 0.0", "retire 1.0", "retire 2.0", "stop 2.0"], @cluster.happened
    @supervisor.ended(10_002, nil)
    assert @supervisor.shrink
    refute @supervisor.shrink, "the last one stays"
    assert_equal [0], @supervisor.active
  end

  def test_there_is_no_more_room
    booted(ROOM)
    refute @supervisor.grow
  end

  def test_the_oldest_goes_first_where_that_is_asked_for
    booted(2, worker_culling_strategy: :oldest)
    @supervisor.shrink
    assert_equal [1], @supervisor.active
  end

  # ---- workers that do not respond ----

  # State, the seconds it may take, the line of the log.
  { booting: [60, /Killed .*: it was not ready after 60 s/], ready: [60, /Killed .*: it did not check in within 60 s/],
    stopping: [32, /Killed .*: it did not end within 32 s after/] }.each do |state, (limit, line)|
    define_method("test_too_long_#{state}") do
      begin_with
      killed = []
      there_is("0.0", state)
      @supervisor.active << 0
      Process.stub(:kill, ->(*words) { killed << words }) do
        [limit - 1, limit + 1, limit + 2].each do |seconds|
          @cluster.now = 1000.0 + seconds
          @supervisor.reconcile
        end
      end
      assert_equal [["KILL", 10_000]], killed
      assert_match line, @cluster.log.join("\n")
    end
  end

  def test_a_mold_that_does_not_fork
    begin_with
    @supervisor.start(1)
    @cluster.now += 61
    @supervisor.reconcile
    assert_equal [@molds[0]], @generations.hung_ones
    assert_equal [0, "the mold did not fork it within 60 s"], @generations.failed
  end

  def test_a_fork_that_fails
    begin_with
    @supervisor.start(1)
    @cluster.not_forked(Rondo::MessageSocket::Message.new(:not_forked, { "seat" => "0", "message" => "no memory" }, []))
    assert_equal [0, "no memory"], @generations.failed
    assert_equal ["ended 0.0", "fork 0", "fork 0"], @cluster.happened
  end

  def test_a_worker_that_cannot_boot_says_why
    begin_with
    @supervisor.start(1)
    @cluster.workers.last.notify(:hello, pid: 10_000)
    @cluster.workers.last.notify(:failed, message: "no luck")
    @supervisor.receive_from_all
    @supervisor.ended(10_000, nil)
    assert_equal [0, "no luck"], @generations.failed
  end

  def test_workers_that_end_before_they_are_ready_fail_their_generation_at_last
    begin_with
    @supervisor.start(1)
    Rondo::Supervisor::LOST.times do |number|
      assert_nil @generations.failed
      @cluster.workers.last.notify(:hello, pid: 10_000 + number)
      @supervisor.receive_from_all
      @supervisor.ended(10_000 + number, nil)
      @cluster.now += 31
      @supervisor.reconcile
    end
    assert_match(/before it was ready/, @generations.failed.last)
  end

  # ---- reasons to replace a worker ----

  def test_lifetimes
    booted(2, max_requests: 100)
    @cluster.workers.first.notify(:alive, requests: 100)
    @supervisor.receive_from_all
    @cluster.loop.pass
    assert_equal ["fork 0", "reconciled"], @cluster.happened
    assert_match(/Replacing Worker 0 .*: 100 requests/, @cluster.log.join("\n"))
  end

  def test_a_request_that_hangs
    booted(2, hard_request_timeout_ms: 10_000)
    @cluster.board.set(1, :oldest_call_ms, 1000 * 1000)
    @cluster.now = 1011.0
    @cluster.loop.pass
    assert_includes @cluster.happened, "fork 1"
    assert_match(/Replacing Worker 1 .*: a request has been in the application for 11 s/, @cluster.log.join("\n"))
  end
end
