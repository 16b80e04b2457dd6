# frozen_string_literal: true

# A random history: machines with the real engine, clients that change the machine, one Redis, and what goes wrong
# between them. Everything follows from the seed.
# SPDX-License-Identifier: MIT

require "simulate/engine"
require "simulate/hub"
require "simulate/clients"

module Simulate
  # Worker, hub, engine, and what is on its way between them.
  class Machine
    STAGES = %i[to_hub from_hub feed commands answers listen hear to_worker read].freeze

    attr_reader :name, :worker, :hub, :engine, :pace
    attr_accessor :is_stuck, :is_away

    def initialize(name, world)
      @name = name
      @world = world
      @worker = Worker.new
      @hub = world.new_hub
      @to_hub = []
      @pace = STAGES.to_h { |stage| [stage, 1.0] }
      begin_engine
    end

    def begin_engine
      @engine = Engine.new(@world.redis, @world.old_links)
      @engine.hub_link = self
      @asked = {}
      @given = 0
      @engine.pump.is_away = @is_away
    end

    # A restart by exec: the hub stays, and tells the next engine what it has.
    def change_engine
      @hub.to_engine.shift(@hub.to_engine.size).each { |frame| dispatch(*frame) }
      @engine.pump.break_links("ended")
      step(:from_engine) while @to_hub.any?
      @world.begin_anew(self) if @hub.engine_id.zero?
      begin_engine
      @hub.engine_again
      step(:from_hub) while @hub.to_engine.any? # a part of what it reads at once
    end

    # The worker ends, and its clients with it. What it had sent is read. What the engine says goes on.
    def change_worker
      step(:to_hub) while @worker.to_hub.any?
      @world.clients.each { |client| client.leave if client.machine.equal?(self) }
      @worker = Worker.new
      @hub.worker_again
    end

    # ---- as HubLink, for the engine ----

    def item(item)
      return false if @is_stuck

      note_order(item)
      to_hub(item.text ? [:message, item.channel, item.id, item.text] : [:gap, item.channel, item.id])
    end

    def begins_at(id)
      to_hub([:begins_at, nil, id])
    end

    def copy(channel, floor, _now, known, items)
      return false if @is_stuck

      to_hub([:copy, channel, floor, known, @asked[channel], items.map { |item| [item.id, item.text] }])
    end

    # ---- moves ----

    def step(stage)
      pump = @engine.pump
      case stage
      when :to_hub then (frame = @worker.to_hub.shift) && @hub.from_worker(*frame)
      when :from_hub then (frame = @hub.to_engine.shift) && dispatch(*frame)
      when :feed then pump.feed
      when :commands then pump.commands&.execute unless @is_away
      when :listen then pump.listener&.execute unless @is_away
      when :answers then pump.read(pump.commands) unless @is_away
      when :hear then pump.read(pump.listener) unless @is_away
      when :from_engine then (frame = @to_hub.shift) && @hub.from_engine(*frame)
      when :to_worker
        step(:from_engine)
        (frame = @hub.to_worker.shift) && @worker.take(*frame)
      when :read then @world.clients.each { |client| client.read if client.machine.equal?(self) }
      end
    end

    # @return [Integer, nil] what comes after is owed to whoever is subscribed here now
    def start_of(channel)
      return if [@worker.to_hub, @hub.to_engine].any? { |frames| frames.any? { |type, name,| name == channel && type != :publish } }

      @engine.tracks.start_of(channel)
    end

    def quiet?
      [@worker.to_hub, @hub.to_engine, @hub.to_worker, @to_hub].all?(&:empty?) && @engine.quiet?
    end

    def away=(is_away)
      @is_away = @engine.pump.is_away = is_away
    end

    private

    # One id is enough for a client of several channels, also to be told what is missing.
    def note_order(item)
      return note_gap(item) unless item.text

      @world.disorder << "#{@name} gave #{item.text} of #{item.channel} after a higher id" if item.id <= @given
      @given = item.id
    end

    # A Redis that began anew is told of for each channel, also where nothing was lost.
    def note_gap(item)
      last = @engine.tracks.start_of(item.channel) or return
      return unless item.id < @given && @world.redis.ever[item.channel].any? { |row| row.id.between?(last + 1, item.id) }

      @world.disorder << "#{@name} told what is missing of #{item.channel} after a higher id"
    end

    def to_hub(frame)
      @world.tell(@name, "engine to hub", *frame)
      @to_hub << frame
      true
    end

    # As HubLink#dispatch.
    def dispatch(type, channel, value = nil)
      @world.tell(@name, "hub to engine", type, channel, value)
      case type
      when :subscribe then @engine.subscribe(channel, false, value)
      when :unsubscribe then @engine.unsubscribe(channel, false)
      when :replay
        @asked[channel] = value
        @engine.copy(channel)
      when :publish then @engine.publish(channel, value.dup, @world.terms(channel))
      end
    end
  end

  class History
    HOUR = 3_600_000_000
    CHANNELS = %w[x y z].freeze
    # What may happen in a history; each has some of it.
    FAULTS = %i[break break_old away flush older trim xdel full stuck clock late engine worker crash expire bad].freeze
    STEPS = 70
    # Of a rule with a time to live, milliseconds.
    # Bytes of a copy that lacks the oldest messages.
    COPY = 40
    TTL = 60_000

    attr_reader :machines, :clients, :redis, :old_links, :faults, :sent, :events, :sizes
    # @return [Array<String>] messages that came out of turn
    attr_reader :disorder
    # @return [Array] what was told of the history so far; nil: nobody wants to know
    attr_accessor :trace

    # @param new_hub [#call, nil] makes a hub
    # @param base [Integer] what time it is at Redis
    def initialize(seed, new_hub: nil, base: 10**15)
      @random = Random.new(seed)
      @new_hub = new_hub
      @base = base
      @redis = StreamsModel::Redis.new(base)
      @redis.page = @random.rand(5).zero? ? 5 : 1000
      @redis.copy_max = COPY if @random.rand(5).zero?
      @old_links = []
      @clients = []
      @sent = Hash.new { |all, key| all[key] = [] }
      @disorder = []
      @events = Hash.new(0)
      @faults = FAULTS.select { @random.rand(5).zero? }
      @sizes = CHANNELS.to_h { |channel| [channel, @random.rand(8).zero? ? 3 : 1000] }
      @ttls = CHANNELS.to_h { |channel| [channel, @faults.include?(:expire) && @random.rand(2).zero? ? TTL : 0] }
      @limit = @random.rand(8).zero? ? 12 : 10_000
      @machines = Array.new(2 + @random.rand(3)) { |index| Machine.new("m#{index}", self) }
      @count = 0
    end

    def run
      (2 + @random.rand(4)).times { |index| add_client(index) }
      STEPS.times { step }
      settle
      self
    end

    # ---- for machines ----

    def new_hub
      skew = @random.rand(6).zero? ? [-HOUR, HOUR].sample(random: @random) : 0
      @new_hub ? @new_hub.call(@sizes, @redis.now + skew, @limit) : Hub.new(@sizes, @redis.now + skew, @limit)
    end

    def terms(channel)
      (@terms ||= {})[channel] ||= Rondo::PubSub::Queued::Terms.new(@sizes[channel], @ttls[channel])
    end

    # The next engine of a hub of which the one before never had an answer does not know where clients are.
    def begin_anew(machine)
      @clients.each { |client| client.begin_anew if client.machine.equal?(machine) }
    end

    def tell(*words)
      @trace&.push(words.flatten.map { |word| short(word) }.join(" "))
    end

    # Whether a copy of a hub may lack what Redis has.
    def limited?
      @limit < 10_000 || @redis.copy_max == COPY
    end

    private

    def rand(count) = @random.rand(count)
    def pick(list) = list.sample(random: @random)

    def add_client(index)
      client = Client.new("c#{index}", CHANNELS.sample(rand(1..3), random: @random), rand(2).zero?)
      @clients << client
      come(client)
    end

    def come(client, machine = pick(@machines))
      client.come(machine)
      tell client.name, "comes to", machine.name, client.seen.map { |channel, seen| [channel, "after", seen.since.inspect] }
    end

    def short(word) = word.is_a?(Integer) && word > 1 ? word - @base : word

    def step
      @redis.now += rand(3)
      act
      2.times { advance(pick(@machines)) }
      execute_old
    end

    def act
      case rand(12)
      when 0..4 then publish(pick(@machines), pick(CHANNELS))
      when 5 then move(pick(@clients))
      when 6 then change_pace(pick(@machines))
      when 7..8 then fail_somehow(pick(@faults), pick(@machines))
      end
    end

    def publish(machine, channel)
      text = "#{channel}#{@count += 1}"
      tell machine.name, "publishes", text
      @sent[[machine, channel]] << text
      @clients.each { |client| client.owe(channel, text) if client.machine.equal?(machine) }
      machine.worker.publish(channel, text)
    end

    def move(client)
      return come(client) unless client.machine
      rand(4).times { client.read } # and breaks off between two messages
      client.leave
      tell client.name, "leaves"
      come(client) if rand(2).zero?
    end

    def change_pace(machine)
      machine.pace.transform_values! { [0.05, 0.3, 0.8, 1.0][rand(4)] }
    end

    # From here on a client without an id has a subscription.
    def note_starts(machine)
      @clients.each do |client|
        next unless client.machine.equal?(machine)

        client.seen.each { |channel, seen| note_start(machine, channel, seen) if seen.since.nil? && seen.start.nil? }
      end
    end

    # From SUBSCRIBE on, if it came before that; else from where the channel is.
    def note_start(machine, channel, seen)
      start = machine.start_of(channel) or return
      return seen.first_at ||= @redis.highest if start.zero?

      at = machine.engine.pump.listener&.subscribed_at.to_h[channel] if seen.first_at
      seen.start = at ? [at, seen.first_at].max : start
    end

    def advance(machine)
      machine.pace.each do |stage, pace|
        next if @random.rand > pace

        (rand(1..3)).times { machine.step(stage) }
      end
      note_starts(machine)
    end

    # Redis may read what is on its way on a connection that is closed here.
    def execute_old
      return if @old_links.empty? || rand(3).positive?

      link = pick(@old_links)
      link.out.empty? ? @old_links.delete(link) : link.execute
    end

    # ---- faults ----

    def fail_somehow(fault, machine)
      return unless fault

      tell fault, machine.name
      @events[fault] += 1
      case fault
      when :break then machine.engine.pump.break_links
      when :break_old then break_all
      when :away then machine.is_away ? come_back(machine) : machine.away = true
      when :flush
        @redis.flush
        @redis.now += 1000 # messages do not come faster than microseconds pass
      when :older then @older ? go_back : @older = @redis.snapshot
      when :trim then @redis.erase(pick(CHANNELS)) { |_, index| index < rand(1..2) }
      when :xdel then delete_one(pick(CHANNELS))
      when :full then @redis.is_full = !@redis.is_full && pick([StreamsModel::OOM, StreamsModel::READONLY])
      when :bad then refuse_some(pick(CHANNELS))
      when :stuck then machine.is_stuck = !machine.is_stuck
      when :clock then @redis.now += pick([-HOUR, HOUR, -2_000_000, 2_000_000])
      when :late then give_up(machine)
      when :engine then machine.change_engine
      when :worker then end_worker(machine)
      when :crash then crash(machine)
      when :expire then @redis.now += pick([TTL * 500, TTL * 1500])
      end
    end

    # Redis refuses all messages of a channel, or takes them again.
    def refuse_some(channel)
      @redis.bad.delete(channel) or @redis.bad[channel] = pick(%w[WRONGTYPE NOPERM])
    end

    # Some clients come back at once.
    def end_worker(machine)
      machine.change_worker
      @clients.each { |client| come(client, machine) if client.machine.nil? && rand(2).zero? }
    end

    def break_all
      @machines.each { |machine| machine.engine.pump.break_links }
    end

    def come_back(machine)
      machine.away = false
      machine.engine.pump.break_links
    end

    def go_back
      break_all
      @redis.restore(@older)
      @older = nil
    end

    def delete_one(channel)
      count = @redis.streams[channel].size
      at = count.positive? ? rand(count) : 0
      @redis.erase(channel) { |_, index| index == at }
    end

    def give_up(machine)
      ticket = machine.worker.give_up or return
      seen = @clients.find { |each| each.connection.equal?(ticket.connection) }.seen[ticket.channel]
      seen.since = seen.owed = seen.start = seen.first_at = nil
      seen.is_late = true
    end

    def crash(machine)
      @clients.each { |client| client.leave if client.machine.equal?(machine) }
      machine.engine.pump.break_links
      @machines[@machines.index(machine)] = Machine.new("#{machine.name}'", self)
    end

    # ---- the end ----

    # All is well again; a last message of each channel shows what was lost before it.
    def settle
      tell "all is well"
      @redis.is_full = false
      @redis.bad.clear
      @machines.each { |machine| mend(machine) }
      @clients.each { |client| come(client) unless client.machine }
      calm
      tell "last messages"
      CHANNELS.each { |channel| publish(pick(@machines), channel) }
      calm
    end

    def mend(machine)
      machine.is_stuck = false
      come_back(machine) if machine.is_away
      machine.pace.transform_values! { 1.0 }
    end

    def calm
      rounds = 0
      600.times do
        @machines.each do |machine|
          machine.pace.each_key { |stage| 4.times { machine.step(stage) } }
          note_starts(machine)
        end
        rounds = @machines.all?(&:quiet?) && @clients.all?(&:whole?) ? rounds + 1 : 0
        return if rounds == 3
      end
      raise "it does not come to rest: #{@machines.map { |machine| [machine.name, machine.engine.outbox.count, machine.worker.tickets.size] }}"
    end
  end
end
