# frozen_string_literal: true

# Redis and a server of streams without sockets: what streams/scripts.rb does in Redis, in Ruby, and connections on which
# a test moves one command or one answer at a time. Used by test/unit/pubsub/streams.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/pubsub/redis/link"
require "rondo/pubsub/redis/replies"
require "rondo/pubsub/redis_streams"
require "rondo/pubsub/streams/pump"

module StreamsModel
  Streams = Rondo::PubSub::RedisStreams
  Scripts = Streams::Scripts
  Refusal = Rondo::PubSub::Redis::Replies::Refusal
  READONLY = "READONLY You can't write against a read only replica."
  OOM = "OOM command not allowed when used memory > 'maxmemory'."

  # A log that says nothing.
  class Silence
    def say(*) = nil
    def error(*) = nil
  end

  # An outbox that counts nothing.
  class Room
    def set_aside(*) = nil
    def take_up(_entry) = nil
  end

  # One connection. Redis reads `out` in order, the server reads `answers` in order.
  class Wire
    attr_reader :out, :answers, :entries

    def initialize(redis, &on_push)
      @redis = redis
      @on_push = on_push
      @out = []
      @answers = []
      @blocks = []
      @entries = []
    end

    def ready? = true
    def pending = @blocks.size

    def ask(words, entry = nil, &block)
      @out << words.map(&:to_s)
      @blocks << block
      @entries << entry
    end

    def ask_encoded(bytes, entry, &block)
      Rondo::PubSub::Redis::Replies.new(1 << 27).feed(bytes) { |words| ask(words, entry, &block) }
    end

    def push(*words) = @answers << [:push, words]

    # Redis executes a command.
    # @return [Array<Array<String>>] all that was asked
    def log = @log ||= []

    def execute
      words = @out.shift or return
      log << words
      reply = @redis.execute(words, self)
      @answers << [:reply, reply] unless reply == :pushed
    end

    # A SUBSCRIBE is answered by a push.
    def tell(words)
      @out << words
    end

    def take
      kind, value = @answers.shift
      return @on_push.call(*value) if kind == :push
      return unless kind

      @entries.shift
      @blocks.shift.call(value)
    end
  end

  # What is in Redis, and what it ever wrote.
  class Redis
    Row = Struct.new(:id, :previous, :kind, :text)

    # @return [Integer] messages of an answer; bytes of the copies that servers ask for
    attr_accessor :now, :page, :copy_max
    # @return [Boolean, String] whether it does not write now; what it says then
    attr_accessor :is_full
    attr_reader :ever, :streams, :clock, :erased
    # @return [Hash{String => String}] channels whose messages it refuses for good: WRONGTYPE or NOPERM
    attr_reader :bad
    # @return [Array<String>] messages that it refused so, at least once
    attr_reader :refused

    # @return [Integer] the highest id that it ever gave: a Redis that lost all does not know it
    def highest
      @ever.each_value.filter_map { |rows| rows.last&.id }.push(@clock).max
    end

    # @return [Integer] how often a message that somebody deleted looked like one that was lost when Redis went back
    attr_reader :doubts

    # @param now [Integer] microseconds
    def initialize(now = 1_000_000)
      @now = now
      @page = 5
      @copy_max = Scripts::PAGE
      @doubts = 0
      @bad = {}
      @refused = []
      @ever = Hash.new { |all, channel| all[channel] = [] }
      @erased = Hash.new { |all, channel| all[channel] = [] }
      @listeners = Hash.new { |all, channel| all[channel] = [] }
      flush
    end

    def flush
      @began = @clock = 0
      @by = {}
      @last = Hash.new(0)
      @streams = Hash.new { |all, channel| all[channel] = [] }
      @expiry = {}
    end

    # Somebody deletes messages, oldest first or anywhere.
    # @return [Integer] of how many channels
    def erase(channel, &block)
      gone, kept = @streams[channel].partition.with_index(&block)
      @streams[channel] = kept
      @erased[channel].concat(gone.map(&:id))
      gone.size
    end

    def snapshot
      [@began, @clock, @by.dup, @last.dup, @streams.to_h { |name, rows| [name, rows.dup] }, @expiry.dup]
    end

    def restore((began, clock, by, last, streams, expiry))
      flush
      @expiry.update(expiry)
      @began = began
      @clock = clock
      @by.update(by)
      @last.update(last)
      @streams.update(streams)
    end

    def forget(wire)
      @listeners.each_value { |wires| wires.delete(wire) }
    end

    def execute(words, wire)
      verb, *rest = words
      expire if @expiry.any?
      case verb
      when "PING" then "PONG"
      when "SUBSCRIBE" then subscribe(rest.first, wire)
      when "UNSUBSCRIBE" then unsubscribe(rest.first, wire)
      when "EVALSHA" then run(*rest)
      else raise "what is #{verb}?"
      end
    end

    private

    def subscribe(channel, wire)
      @listeners[channel] |= [wire]
      wire.push("subscribe", channel, @clock)
      :pushed
    end

    def unsubscribe(channel, wire)
      @listeners[channel].delete(wire)
      wire.push("unsubscribe", channel, 0)
      :pushed
    end

    def run(sha, count, *rest)
      keys = rest.take(count.to_i)
      words = rest.drop(count.to_i)
      return refuse(words[8], "NOPERM") if sha == Scripts::SHA[Scripts::PUBLISH] && @bad[words[1]] == "NOPERM"

      begin_at(words.first.to_i)
      case Scripts::SHA.key(sha)
      when Scripts::PUBLISH then publish(keys, *words)
      when Scripts::READ then read(keys, *words)
      when Scripts::CLOCK then [@clock, @began].max.to_s
      when Scripts::CHECK then check(keys, *words.map(&:to_i))
      end
    end

    def begin_at(known)
      return unless @began.zero?

      @clock = @began = [@now, @clock + 1, known + 1].max
    end

    # The branches are those of the script, in their order: see scripts.rb.
    def publish(keys, known, channel, number, before, *rest)
      last, size, ttl, kind, text, confirmed = rest
      written = @by.fetch(keys[2], -1)
      return 0 if written >= number.to_i
      return Refusal.new("EARLY") if written < before.to_i && before.to_i > confirmed.to_i
      return Refusal.new(@is_full == true ? OOM : @is_full) if @is_full
      return refuse(text, "WRONGTYPE") if @bad[channel]

      id = [@now, @clock + 1, known.to_i + 1].max
      row = Row.new(id, [@last[channel], last.to_i].max, kind, text)
      keep(channel, row, size.to_i, ttl.to_i)
      @by[keys[2]] = number.to_i
      @listeners[channel].each { |wire| wire.push("message", channel, head(row) + text.b) }
      id
    end

    def refuse(text, reason)
      @refused |= [text]
      Refusal.new(reason)
    end

    def check(keys, known, number, at, newest)
      channel = keys[3].split(":m:", 2).last.to_s
      lost = @clock < known || (known?(at) && @by.fetch(keys[2], -1) < number)
      @doubts += 1 if !lost && known?(newest) && @erased[channel].include?(newest)
      if known?(newest) && @streams[channel].none? { |row| row.id == newest }
        after = @streams[channel].find { |row| row.id > newest }
        lost ||= @last[channel] < newest || @streams[channel].any? { |row| row.id < newest }
        lost ||= !after.nil? && after.previous < newest
      end
      @clock = @began = [@now, @clock + 1, known + 1].max if lost
      @began.to_s
    end

    def known?(id)
      id > @began && @now - id < Scripts::MEMORY
    end

    def keep(channel, row, size, ttl)
      @streams[channel] << row
      @ever[channel] << row
      @clock = @last[channel] = row.id
      over = @streams[channel].size - size
      erase(channel) { |old, index| index < over || (ttl.positive? && old.id < row.id - (ttl * 1000)) }
      @expiry.delete(channel)
      return unless ttl.positive?

      @expiry[channel] = [@now + (ttl * 1000), @now + ([2 * ttl, Scripts::LAST_TTL].max * 1000)]
    end

    def expire
      @expiry.each do |channel, (stream, last)|
        erase(channel) { true } if @now >= stream
        @last.delete(channel) if @now >= last
      end
      @expiry.delete_if { |_, (_, last)| @now >= last }
    end

    def head(row)
      "\0rondo #{@began} #{row.previous} #{row.id} #{row.kind}\n".b
    end

    def read(keys, _known, after, upto, bytes, which)
      channel = keys[2].split(":m:", 2).last
      rows = @streams[channel].select { |row| row.id > after.to_i && (upto == "+" || row.id <= upto.to_i) }
      rows.reverse! if which == "newest"
      page = fitting(rows.first(@page), bytes.to_i)
      found = page.map { |row| [row.id.to_s, row.previous.to_s, row.kind, row.text.dup] }
      [@began.to_s, @clock.to_s, [@now, @clock].max.to_s, @last[channel].to_s, rows.size > page.size ? 1 : 0, found]
    end

    def fitting(rows, limit)
      bytes = 0
      rows.take_while do |row|
        fits = bytes.zero? || bytes + row.text.bytesize <= limit
        bytes += row.text.bytesize + 1
        fits
      end
    end
  end

  # An engine: tracks, a publisher and what its hub got.
  class Server
    KEYS = Scripts::Keys.new(nil)
    TERMS = Rondo::PubSub::Queued::Terms.new(1000, 0)

    # What the hub got of a channel since it was followed. `owed`: what came after is owed.
    Followed = Struct.new(:channel, :owed, :items)

    attr_reader :tracks, :publisher, :commands, :listener, :outbox, :followed, :order, :copies, :copied
    # @return [Rondo::PubSub::Queued::Terms] of all channels
    attr_accessor :terms
    attr_accessor :is_stuck

    def initialize(redis)
      @redis = redis
      @terms = TERMS
      @tracks = Streams::Tracks.new(KEYS, self)
      @time = 0
      @publisher = Streams::Publisher.new(KEYS, @tracks, Streams::Returned.new(Room.new, "Redis", Silence.new, clock: -> { @time += 10 }))
      @outbox = []
      @followed = {}
      @order = []
      @copies = []
      connect
    end

    # ---- the hub ----

    def item(item)
      return false if @is_stuck

      @order << item
      @followed[item.channel]&.items&.push(item)
      true
    end

    # @return [Array<Integer>] what the hub was told of where channels begin
    def begins = @begins ||= []

    def begins_at(id) = begins << id

    def give(channel, floor, _now, _clock, items)
      return false if @is_stuck

      @copies << [channel, floor, items, last_of(channel)]
      true
    end

    def follow(channel, after = 1)
      return if @followed[channel]

      @followed[channel] = Followed.new(channel, after > 1 ? after : nil, [])
      @changes << ["SUBSCRIBE", channel]
      @tracks.follow(channel, after, @changes.size + @asked)
    end

    def unfollow(channel)
      @followed.delete(channel)
      @tracks.forget(channel)
      @changes << ["UNSUBSCRIBE", channel]
    end

    def copy(channel)
      @tracks.copy(channel, @changes.size + @asked) if @followed[channel]
    end

    def publish(channel, text)
      @outbox << Streams::Kept.new(text, true, nil, 0).tap do |entry|
        entry.channel = channel
        entry.terms = @terms
        entry.kind = "t"
        entry.number = @publisher.lineage.next_number
      end
    end

    # ---- connections ----

    # As StreamPump#feed_links.
    def feed
      @tracks.ask(@commands, @listener) { |number| number <= @confirmed }
      while @commands.pending < 8
        entry = next_entry or break
        send_entry(entry)
      end
      send_changes
    end

    # The old commands are not unsent by that: Redis may still read some.
    def disconnect
      old = @commands
      @redis.forget(@listener)
      @outbox.unshift(*unanswered(old))
      @refused = nil
      @tracks.forget_link
      @publisher.forget_link
      connect
      old
    end

    def step(which)
      case which
      when :execute then @commands.execute
      when :take then @commands.take
      when :listen then @listener.execute
      when :hear then @listener.take
      end
      note_starts
    rescue Rondo::PubSub::Redis::Link::Refused
      disconnect
    end

    def asked = @commands.log

    def quiet?
      [@commands, @listener].all? { |wire| wire.out.empty? && wire.answers.empty? && wire.pending.zero? } &&
        @outbox.empty? && @publisher.returned.held.empty?
    end

    private

    def connect
      @commands = Wire.new(@redis)
      @listener = Wire.new(@redis) { |*push| pushed(*push) }
      @changes = @followed.each_key.map { |channel| ["SUBSCRIBE", channel] }
      @asked = @confirmed = 0
      @is_new = true
      @tracks.check(@commands, @publisher.acknowledged)
    end

    def send_changes
      @asked += @changes.size
      @changes.each { |change| @listener.tell(change) }
      @changes.clear
      @listener.ask(["PING"]) { @tracks.connected } if @is_new
      @is_new = false
    end

    def send_entry(entry)
      @commands.ask_encoded(@publisher.encode(entry), entry) { |reply| written(entry, reply) }
    end

    # As StreamPump#next_entry.
    def next_entry
      @publisher.returned.next || loop do
        entry = @outbox.shift or return
        return entry if @publisher.returned.pass?(entry)
      end
    end

    # As StreamPump#unanswered.
    def unanswered(old)
      @publisher.returned.among([@refused, *old.entries].compact.map { |entry| [entry, true] }).map(&:first)
    end

    # As StreamPump#written.
    def written(entry, reply)
      return not_written(entry, reply.message) if reply.is_a?(Refusal)

      @publisher.written(entry, reply)
      @tracks.see(reply)
    end

    def not_written(entry, reason)
      return @publisher.take_back(entry, reason) if Streams::Returned.takes?(reason)
      return @publisher.answered(entry) unless Streams::Publisher::ELSEWHERE.match?(reason)

      @refused = entry
      raise Rondo::PubSub::Redis::Link::Refused, reason
    end

    def pushed(kind, channel, what)
      case kind
      when "message" then @tracks.take(channel.dup, what)
      when "subscribe", "unsubscribe" then @confirmed += 1
      end
    end

    def note_starts
      @followed.each_value { |followed| followed.owed ||= last_of(followed.channel) }
    end

    def last_of(channel)
      @tracks.instance_variable_get(:@tracks)[channel].last
    end
  end
end
