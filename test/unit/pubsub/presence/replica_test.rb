# frozen_string_literal: true

# Replicas of several processes, with messages that are lost, late, doubled and out of order, and processes that die, end
# and stand still. After a quiet time all know the same, and for each id joins and leaves have alternated. RONDO_SEEDS
# says how many histories are tried.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/presence"

class PresenceReplicaTest < Minitest::Test
  P = Rondo::Presence
  SEEDS = Integer(ENV.fetch("RONDO_SEEDS", "60"))

  # A process: a replica, the channels that it follows, what its blocks were told.
  class Member
    attr_reader :replica, :channels, :told, :once, :infos, :truth
    # @return [Array, nil] what comes while it stands still; nil: that is lost
    attr_accessor :still, :kept

    def initialize(name, limits, now, random, largest)
      @replica = P::Replica.new(name, limits, now, largest: largest, random: random)
      @channels = {}
      @told = Hash.new { |all, key| all[key] = [] }
      @once = Hash.new { |all, key| all[key] = [] }
      @infos = Hash.new { |all, key| all[key] = [] }
      @truth = Hash.new { |all, room| all[room] = Hash.new(0) }
      @still = false
    end

    def name = @replica.name

    def note_changes
      while (room, changes = @replica.take_changes(7))
        changes.each do |kind, id, info, silent|
          @told[[room, id]] << kind
          @once[[room, id]] << kind if @replica.once?(room, kind, id, silent)
          @infos[[room, id]] << info
        end
      end
    end
  end

  # A network with a clock of its own.
  class World
    ROOMS = %w[a b c].freeze
    STEP = 0.05
    attr_reader :members, :dead, :now, :sizes
    attr_accessor :loss

    def initialize(seed, limits, count, largest = P::Frames::MOST_BYTES)
      @random = Random.new(seed)
      @largest = largest
      @sizes = []
      @limits = limits
      @now = 1000.0
      @members = []
      @dead = []
      @flights = []
      @loss = 0.0
      count.times { add }
    end

    def add
      member = Member.new(Random.new(@random.rand(1 << 60)).bytes(8).unpack1("H*"), @limits, @now, @random, @largest)
      ROOMS.first(2).each { |room| member.replica.listen(room, @now) }
      @members << member
    end

    def step
      @now += STEP
      due, @flights = @flights.partition { |at, *| at <= @now }
      due.sort_by(&:first).each { |_, to, room, text| hand(to, room, text) }
      @members.each { |member| turn(member) unless member.still }
    end

    def turn(member)
      member.replica.tick(@now)
      send_all(member)
      member.note_changes
    end

    def run(seconds) = (seconds / STEP).ceil.times { step }

    def send_all(member)
      member.replica.out.shift(member.replica.out.size).each do |what, *words|
        case what
        when :all then spread(member, nil, words[0])
        when :room then spread(member, *words)
        when :follow then member.channels[words[0]] = true
        when :unfollow then member.channels.delete(words[0])
        end
      end
    end

    def act
      member = @members.sample(random: @random)
      return if member.nil? || member.still

      room, id = ROOMS.sample(random: @random), "id#{@random.rand(12)}"
      @random.rand < 0.55 ? enter(member, room, id) : exit_room(member, room, id)
    end

    def enter(member, room, id)
      member.replica.join(room, id, %("#{id}"), @now)
      member.truth[room][id] += 1
    end

    def exit_room(member, room, id)
      return unless member.truth[room][id].positive?

      member.replica.leave(room, id, @now)
      member.truth[room].delete(id) if (member.truth[room][id] -= 1).zero?
    end

    def kill(at) = @dead << @members.delete_at(at)

    def finish(at)
      member = @members.delete_at(at)
      member.replica.finish
      send_all(member)
      @dead << member
    end

    def truth(room)
      @members.flat_map { |member| member.truth[room].keys }.uniq.sort
    end

    private

    def spread(from, room, text)
      @sizes << text.bytesize
      @members.each do |to|
        next if to != from && @random.rand < @loss

        copies = to != from && @random.rand < @loss ? 2 : 1
        copies.times { @flights << [@now + (to == from ? 0 : @random.rand * 3 * @loss), to, room, text] }
      end
    end

    def hand(to, room, text)
      return to.kept&.push([room, text]) if to.still
      return unless @members.include?(to)

      to.replica.receive(room, text, @now) if room.nil? || to.channels.key?(room)
    end
  end

  def limits(**values) = P::Limits.default.change(**values)

  def test_all_know_the_truth_after_a_quiet_time
    SEEDS.times { |seed| run_history(seed) }
  end

  def run_history(seed)
    random = Random.new(seed)
    world = World.new(seed, limits(grace: [0, 1, 2, 6].sample(random: random)), 2 + random.rand(4))
    world.loss = [0.0, 0.05, 0.3].sample(random: random)
    250.times do
      random.rand(3).times { world.act }
      change(world, random)
      world.step
    end
    world.members.each { |member| member.still = false }
    world.loss = 0.0
    world.run(45)
    check(world, seed)
  end

  def change(world, random)
    case random.rand(120)
    when 0 then world.kill(random.rand(world.members.size)) if world.members.size > 1
    when 1 then world.finish(random.rand(world.members.size)) if world.members.size > 1
    when 2 then world.add
    when 3 then (member = world.members.sample(random: random)).still = !member.still
    end
  end

  def check(world, seed)
    World::ROOMS.each do |room|
      world.members.each do |member|
        next unless member.channels.key?(room)

        where = "seed #{seed}, #{room} at #{member.name}"
        assert_equal world.truth(room), member.replica.entries(room).keys.sort, where
        assert member.replica.complete?(room, world.now), where
        check_told(member, room, where)
      end
    end
    world.members.each { |member| assert_equal counted(member.replica), member.replica.bytes, "bytes, seed #{seed}" }
  end

  def check_told(member, room, where)
    return unless member.replica.rooms[room].told

    present = member.replica.entries(room)
    ids = present.keys | member.told.keys.filter_map { |name, id| id if name == room }
    ids.each do |id|
      told = member.told[[room, id]]
      assert_equal told, Array.new(told.size) { |index| index.even? ? :join : :leave }, "#{where}, #{id}"
      assert_equal present.key?(id), told.last == :join, "#{where}, #{id}"
    end
  end

  def counted(replica)
    replica.rooms.each_value.sum do |room|
      [room.local, *room.records.values.map(&:ids)].sum { |ids| ids.sum { |id, info| P::Room.cost(id, info) } }
    end
  end

  # ---- one thing at a time ----

  def quiet(count = 2, **values)
    World.new(7, limits(**values), count).tap { |world| world.run(2) }
  end

  def test_a_process_that_dies_is_gone_within_five_seconds
    world = quiet
    world.enter(world.members[0], "a", "x")
    world.run(1.5)
    assert_equal ["x"], world.members[1].replica.entries("a").keys
    world.kill(0)
    world.run(5)
    assert_empty world.members[0].replica.entries("a")
    assert_equal 1, world.members[0].replica.counts.lost
  end

  def test_a_process_that_ends_needs_only_the_grace
    world = quiet(grace: 1)
    world.enter(world.members[0], "a", "x")
    world.run(0.5)
    world.finish(0)
    world.run(0.5)
    assert_equal ["x"], world.members[0].replica.entries("a").keys
    world.run(1)
    assert_empty world.members[0].replica.entries("a")
    assert_equal 0, world.members[0].replica.counts.lost
  end

  def test_who_comes_back_elsewhere_within_the_grace_has_not_left
    world = quiet(3)
    world.enter(world.members[0], "a", "x")
    world.run(1)
    world.exit_room(world.members[0], "a", "x")
    world.run(1)
    world.enter(world.members[1], "a", "x")
    world.run(5)
    world.members.each { |member| assert_equal [:join], member.told[%w[a x]] }
    world.exit_room(world.members[1], "a", "x")
    world.run(5)
    world.members.each { |member| assert_equal %i[join leave], member.told[%w[a x]] }
  end

  def test_several_tabs_are_one_id
    world = quiet
    3.times { world.enter(world.members[0], "a", "x") }
    2.times { world.exit_room(world.members[0], "a", "x") }
    world.run(4)
    world.members.each { |member| assert_equal [:join], member.told[%w[a x]] }
    world.exit_room(world.members[0], "a", "x")
    world.run(4)
    world.members.each { |member| assert_equal %i[join leave], member.told[%w[a x]] }
  end

  def test_a_large_room_goes_in_pages_to_one_who_comes_later
    world = quiet(1)
    2000.times { |number| world.enter(world.members[0], "c", "id #{number}") }
    world.add
    world.run(1)
    world.members[1].replica.follow("c", world.now, until_time: world.now + 60)
    refute world.members[1].replica.complete?("c", world.now)
    world.run(1)
    assert world.members[1].replica.complete?("c", world.now)
    assert_equal 2000, world.members[1].replica.entries("c").size
  end

  # Neither the others nor what it knows of them.
  def test_a_process_that_stood_still_does_not_drop_the_others
    world = quiet(2, grace: 0)
    world.enter(world.members[0], "a", "x")
    world.run(1)
    world.members[1].still = true
    world.run(30)
    world.members[1].still = false
    world.run(3)
    assert_equal [:join], world.members[1].told[%w[a x]]
  end

  # What came meanwhile is lost, so it has to ask; or it comes after the own beat.
  def test_a_process_that_stood_still_has_heard_the_others_before_ids_leave
    [false, true].each do |kept|
      world = quiet(3, grace: 2)
      one, two, still = world.members
      world.enter(one, "a", "x")
      world.run(1)
      world.exit_room(one, "a", "x")
      world.run(0.5)
      still.still = true
      still.kept = [] if kept
      world.run(0.5)
      world.enter(two, "a", "x")
      world.run(20)
      still.still = false
      world.run(0.5)
      still.kept&.each { |room, text| still.replica.receive(room, text, world.now) }
      world.run(5)
      world.members.each { |member| assert_equal [:join], member.told[%w[a x]] }
    end
  end

  def test_who_left_for_good_leaves_also_where_a_process_stood_still
    world = quiet(2, grace: 2)
    world.enter(world.members[0], "a", "x")
    world.run(1)
    world.exit_room(world.members[0], "a", "x")
    world.run(0.5)
    world.members[1].still = true
    world.run(20)
    world.members[1].still = false
    world.run(5)
    world.members.each { |member| assert_equal %i[join leave], member.told[%w[a x]] }
  end

  def test_a_deaf_process_does_not_wake_for_ids_that_cannot_leave_yet
    replica = P::Replica.new("0" * 16, limits(grace: 1), 1000.0)
    replica.tick(1000.0)
    replica.join("a", "x", nil, 1000.0)
    replica.leave("a", "x", 1000.0)
    5.times { |second| replica.tick(1010.0 + second) }
    assert_operator replica.next_due(1014.5), :>, 1014.5
    assert_equal ["x"], replica.entries("a").keys
  end

  # What it says never comes back to it. Ids that have left must not stay for ever.
  def test_ids_leave_a_process_that_stays_deaf_for_long
    replica = P::Replica.new("0" * 16, limits(grace: 1), 1000.0)
    replica.join("a", "x", nil, 1000.0)
    replica.leave("a", "x", 1000.0)
    (0..59).each { |half| replica.tick(1000.0 + (half / 2.0)) }
    assert_equal ["x"], replica.entries("a").keys
    (60..62).each { |half| replica.tick(1000.0 + (half / 2.0)) }
    assert_empty replica.entries("a")
  end

  # An engine that is away for less than the silence drops everything: what changed then is in none of the beats that name
  # it first, and a cycle of all rooms takes long.
  def test_beats_that_are_missing_make_all_rooms_doubtful
    world = quiet(silence: 60)
    rooms = Array.new(3000) { |number| "room #{number}" }
    rooms.each do |room|
      world.enter(world.members[0], room, "x")
      world.members[1].replica.follow(room, world.now, until_time: world.now + 600)
    end
    world.run(5)
    world.loss = 1.0
    rooms.last(300).each { |room| world.enter(world.members[0], room, "y") }
    world.run(20)
    world.loss = 0.0
    world.run(3)
    assert_equal 0, world.members[1].replica.counts.lost
    rooms.last(300).each { |room| assert_equal %w[x y], world.members[1].replica.entries(room).keys.sort, room }
  end

  def test_the_rooms_that_nobody_needs_are_not_followed_any_more
    world = quiet
    world.members[1].replica.follow("c", world.now, until_time: world.now + 1)
    world.enter(world.members[0], "c", "x")
    world.run(0.5)
    assert_equal ["x"], world.members[1].replica.entries("c").keys
    world.run(8)
    refute world.members[1].channels.key?("c")
    assert_equal 0, world.members[1].replica.bytes
  end

  def test_limits_have_an_answer
    world = quiet(2, replica_bytes: 65_536, rooms: 3)
    joined = (1..1000).map { |number| world.members[0].replica.join("a", "id #{number}", nil, world.now) }
    assert_includes joined, :full
    assert_equal :full, world.members[0].replica.join("d", "x", nil, world.now) if world.members[0].replica.join("c", "x", nil, world.now) == :entered
    world.enter(world.members[1], "b", "y")
    world.run(3)
    world.members.each { |member| assert_operator member.replica.bytes, :<=, 65_536 }
    assert_operator world.members[0].replica.counts.refused, :>, 0
    assert_operator world.members[1].replica.bytes, :>, 0
  end

  def test_a_room_that_was_cut_is_completed_when_memory_is_free_again
    world = quiet(2, replica_bytes: 65_536)
    one, two = world.members
    250.times { |number| world.enter(two, "c", "other #{number}") }
    300.times { |number| world.enter(one, "a", "id #{number}") }
    world.run(12)
    assert_operator two.replica.entries("a").size, :<, 300
    assert_empty two.replica.peers[one.name].unsure, "nobody is asked as long as memory is full"
    250.times { |number| world.exit_room(two, "c", "other #{number}") }
    world.run(12)
    assert_equal 300, two.replica.entries("a").size
    assert_empty two.replica.peers[one.name].unsure
  end

  # Pages of a room in messages, of a process that is not there.
  def pages_of(count, entries)
    body = JSON.generate(Array.new(entries) { |number| ["id #{number}", "i" * 16_000] })
    Array.new(count) { |page| "1 s 0123456789abcdef 7 #{page} #{count}\n#{body.gsub("id ", "id #{page} ")}" }
  end

  def test_a_room_as_large_as_the_memory_comes_in_pages
    replica = quiet(1).members[0].replica
    pages = pages_of(72, 30)
    assert_operator pages.sum(&:bytesize), :>, P::Receiving::ASSEMBLY_BYTES
    pages.each { |page| replica.receive("a", page, 1002.0) }
    assert_equal 72 * 30, replica.entries("a").size
    assert_equal 0, replica.counts.refused
  end

  # Of a process with other limits.
  def test_a_room_that_cannot_fit_leaves_place_for_others
    world = quiet(2, replica_bytes: 1 << 20)
    replica = world.members[0].replica
    pages_of(80, 30).first(79).each { |page| replica.receive("a", page, world.now) }
    assert_operator replica.counts.refused, :>, 0
    assert_empty replica.entries("a")
    pages_of(2, 30).each { |page| replica.receive("b", page, world.now) }
    assert_equal 60, replica.entries("b").size
  end

  def test_a_room_that_gave_way_comes_when_it_was_asked_for_again
    world = quiet(1, replica_bytes: 1 << 20)
    replica = world.members[0].replica
    pages = pages_of(41, 30)
    pages.first(40).each { |page| replica.receive("a", page, world.now) }
    pages.each { |page| replica.receive("b", page, world.now) }
    peer = replica.peers["0123456789abcdef"]
    assert_equal ["a"], peer.unsure.keys
    2.times { replica.receive("a", pages[40], world.now) }
    assert_equal 0, peer.assemblies["a"].bytes
    world.run(0.5)
    pages.each { |page| replica.receive("a", page, world.now) }
    assert_empty peer.unsure
    assert_empty peer.assemblies
  end

  def test_the_info_of_the_smallest_name_counts_everywhere
    world = quiet(3)
    world.members.each { |member| member.replica.join("a", "x", %("#{member.name}"), world.now) }
    world.run(2)
    least = world.members.map(&:name).min
    world.members.each { |member| assert_equal %("#{least}"), member.replica.entries("a")["x"] }
    assert_equal [least], world.members.select { |member| member.replica.first? }.map(&:name)
    world.members[0].replica.update("a", "x", %("new"))
    world.members[1].replica.update("a", "x", %("new"))
    world.members[2].replica.update("a", "x", %("new"))
    world.run(1)
    world.members.each { |member| assert_equal '"new"', member.replica.entries("a")["x"] }
  end

  def test_the_largest_ids_and_infos_go_in_messages_that_are_read
    world = quiet(2, info_bytes: 16_384)
    world.members[1].replica.follow("c", world.now, until_time: world.now + 60)
    world.run(1)
    info = JSON.generate("\"" * 8190)
    60.times { |number| world.members[0].replica.join("c", "#{number} ".ljust(256, "\u0001"), info, world.now) }
    world.members[0].replica.tick(world.now)
    sizes = world.members[0].replica.out.map { |words| words.last.bytesize }
    assert_operator sizes.max, :<, P::Frames::MOST_BYTES
    world.turn(world.members[0])
    world.run(0.5)
    assert_equal 60, world.members[1].replica.entries("c").size
    assert_equal 0, world.members[1].replica.counts.repairs
  end

  # Each byte of a name takes six of JSON.
  def test_messages_fit_into_those_that_the_server_publishes
    [P::Frames.needed(1000), 100_000].each do |largest|
      world = World.new(7, limits(info_bytes: 1000), 2, largest)
      one, two = world.members
      sizes = world.sizes
      names = Array.new(300) { |number| number.to_s.ljust(256, "\u0001") }
      world.run(1)
      names.each do |name|
        two.replica.follow(name, world.now, until_time: world.now + 600)
        world.enter(one, name, "x")
        one.replica.join("a", name, JSON.generate("\"" * 499), world.now)
      end
      world.run(40)
      world.add
      world.run(2)
      assert_equal 300, world.members.last.replica.entries("a").size
      names.each { |name| assert_equal ["x"], two.replica.entries(name).keys }
      names.each { |name| one.replica.leave("a", name, world.now) }
      world.run(5)
      assert_empty two.replica.entries("a")
      assert_operator sizes.max, :<=, largest
    end
  end

  # ---- blocks ----

  def test_a_room_with_many_changes_does_not_keep_the_blocks_of_others_waiting
    world = World.new(7, limits, 1)
    replica = world.members[0].replica
    %w[busy calm].each { |room| replica.listen(room, world.now) }
    10.times { |number| replica.join("busy", "id #{number}", nil, world.now) }
    replica.join("calm", "x", nil, world.now)
    assert_equal %w[busy calm busy], Array.new(3) { replica.take_changes(4).first }
    assert_equal ["busy", 2], replica.take_changes(4).then { |room, changes| [room, changes.size] }
    refute_predicate replica, :changes?
  end

  def test_a_leave_is_told_with_the_last_info
    [0, 1].each do |grace|
      world = quiet(2, grace: grace)
      one, two = world.members
      one.replica.join("a", "x", '"old"', world.now)
      world.run(0.5)
      one.replica.update("a", "x", '"new"')
      world.run(0.5)
      one.replica.leave("a", "x", world.now)
      world.run(2)
      [one, two].each { |member| assert_equal ['"old"', '"new"'], member.infos[%w[a x]] }
    end
  end

  # It came and went while a block was slow.
  def test_an_info_is_not_kept_for_a_leave_that_is_not_told
    replica = World.new(7, limits(grace: 0), 1).members[0].replica
    replica.listen("a", 1000.0)
    replica.join("a", "x", '"x"', 1000.0)
    replica.leave("a", "x", 1000.0)
    assert_equal ["a", []], replica.take_changes(4)
    assert_empty replica.rooms["a"].told
  end

  # Of two processes, the first one with ada and the other one with bob.
  def ada_and_bob
    world = quiet(2)
    first, other = world.members.sort_by(&:name)
    world.enter(first, "a", "ada")
    world.enter(other, "a", "bob")
    world.run(1)
    [world, first, other]
  end

  def test_who_told_once_that_an_id_left_in_an_outage_tells_that_it_is_back
    world, first, other = ada_and_bob
    world.loss = 1.0
    world.run(10)
    assert_equal [[:leave], %i[join leave]], [other.once[%w[a ada]], first.once[%w[a bob]]]
    world.loss = 0.0
    world.run(5)
    assert_equal [[:join], %i[leave join]], [first, other].map { |member| member.once[%w[a ada]] }
    assert_equal [%i[join leave join], []], [first, other].map { |member| member.once[%w[a bob]] }
    world.exit_room(first, "a", "ada")
    world.run(5)
    assert_equal [%i[join leave], %i[leave join]], [first, other].map { |member| member.once[%w[a ada]] }
  end

  def test_who_told_once_that_an_id_left_a_process_that_stood_still_tells_that_it_is_back
    world, first, other = ada_and_bob
    first.still = true
    world.run(20)
    first.still = false
    world.run(5)
    assert_equal [[:join], %i[leave join]], [first, other].map { |member| member.once[%w[a ada]] }
  end

  # A process that ends is no outage.
  def test_who_told_once_of_other_leaves_owes_nothing
    world, first, other = ada_and_bob
    world.finish(world.members.index(first))
    world.run(5)
    other.replica.receive(nil, "1 b #{"0" * 16} 1 1\n[]", world.now)
    world.enter(other, "a", "ada")
    world.run(1)
    assert_equal [:leave], other.once[%w[a ada]]
  end

  def test_the_ids_that_are_owed_have_a_limit
    replica = World.new(7, limits, 1).members[0].replica
    P::Replica::MOST_OWED.succ.times { |number| replica.once?("a", :leave, "id #{number}", true) }
    replica.receive(nil, "1 b #{"0" * 16} 1 1\n[]", 1000.0)
    refute replica.once?("a", :join, "id 0", nil)
    assert replica.once?("a", :join, "id 1", nil)
    refute replica.once?("a", :join, "id 1", nil), "only the next join is owed"
  end

  # ---- hostile messages ----

  def test_garbage_and_forgery_raise_nothing_and_are_bounded
    world = quiet
    replica = world.members[0].replica
    world.enter(world.members[1], "a", "x")
    world.run(1)
    random = Random.new(3)
    forged = "0123456789abcdef"
    samples = ["", "\xff".b * 100, "1 b", "1 b #{forged} 1 1\n{", "1 b #{forged} 1 1\n[[1,2,3]]", "1 b #{forged} 1 1\n[[\"a\",-1,2]]",
               "1 d #{forged} 0 1\n[[[\"y\",1]],[]]", "1 d #{forged} 5 1\n[[],[]]", "1 d #{forged} 0 7\n[[[\"\",null]],[]]",
               "1 d #{forged} 0 9\n[[[\"#{"y" * 300}\",null]],[]]", "1 s #{forged} 1 0 99999999\n[]", "1 s #{forged} 1 5 2\n[]",
               "1 d #{forged} 0 11\n[[[\"y\",\"#{"i" * 100_000}\"]],[]]", "1 e #{forged} 1\n[1]", "1 a #{forged} ? \n[\"a\"]",
               "1 a #{forged} *\n#{JSON.generate(Array.new(500) { |i| i.to_s })}", "2 b #{forged} 1 1\n[]", "1 x", "1 s #{forged} 1 0 1\n[[[[[[[]]]]]]]",
               "1 b #{forged} 999999999999999999999 1\n[]", "x" * 600_000, "1 b #{forged} 1 1", "1 d #{forged} 0 13",
               "1 s #{forged} 1 0 1", "1 e #{forged} 1", "1 a #{forged} *"]
    before = replica.counts.invalid
    2000.times do
      bytes = samples.sample(random: random).dup
      bytes.setbyte(random.rand(bytes.bytesize), random.rand(256)) if random.rand < 0.5 && !bytes.empty?
      replica.receive([nil, "a", "zzz"].sample(random: random), bytes, world.now)
    end
    assert_operator replica.counts.invalid, :>, before
    assert_includes replica.entries("a").keys, "x"
    world.run(12)
    assert_equal ["x"], replica.entries("a").keys, "who was only pretended is not heard again"
    assert_equal counted(replica), replica.bytes
  end

  def test_messages_without_json_are_not_valid
    replica = quiet.members[0].replica
    forged = "0123456789abcdef"
    { "b" => "1 1", "d" => "0 1", "s" => "1 0 1", "e" => "1", "a" => "*" }.each do |kind, words|
      ["", "\n"].each do |rest|
        before = replica.counts.invalid
        replica.receive(%w[d s].include?(kind) ? "a" : nil, "1 #{kind} #{forged} #{words}#{rest}", 1002.0)
        assert_equal before + 1, replica.counts.invalid, kind
      end
    end
  end

  def test_a_forged_name_of_ones_own_changes_nothing
    world = quiet
    replica = world.members[0].replica
    world.enter(world.members[0], "a", "x")
    world.run(1)
    replica.receive(nil, "1 x #{replica.name}", world.now)
    replica.receive("a", "1 e #{replica.name} 99\n[\"a\"]", world.now)
    assert_equal ["x"], replica.entries("a").keys
  end

  def test_the_processes_that_are_remembered_have_a_limit
    replica = quiet.members[0].replica
    5000.times { |number| replica.receive(nil, format("1 b %016x 1 1\n[]", number), 2000.0) }
    assert_operator replica.peers.size, :<=, P::Replica::MOST_PEERS
    assert_operator replica.counts.refused, :>, 0
  end
end
