# frozen_string_literal: true

# Channels with a history in JetStream: one stream for an application, which each server reads in its order. Under the
# engine's mutex, on the thread of the pump but for what the hub asks.
#
#   STREAM.INFO ──▶ a consumer at the last message that was read here ──▶ is it the same? what is behind it is collected
#                                                                                      │ all of it has come
#                         a number is missing, silence: all anew ◀── live ◀── gaps are told, all is delivered
#
# An id is the time of the message in the stream, in microseconds; see {Stored}. Decision 72 has the reasons.
# SPDX-License-Identifier: MIT

require "json"
require "rondo/pubsub/nats/pump"
require "rondo/pubsub/nats/consumer"
require "rondo/pubsub/nats/answers"
require "rondo/pubsub/nats/awaited"
require "rondo/pubsub/nats/copies"
require "rondo/pubsub/nats/gaps"
require "rondo/pubsub/nats/leader"
require "rondo/pubsub/nats/losses"
require "rondo/pubsub/nats/rewind"
require "rondo/pubsub/nats/setup"
require "rondo/pubsub/nats/wish"
require "rondo/pubsub/queued/kept"

module Rondo
  module PubSub
    class Nats < Engine
      # A message for the stream, that waits.
      # @api private
      class Kept < Entry
        # @return [Queued::Terms]
        attr_accessor :terms
        # @return [Awaited::Place, nil] where it is, if somebody waits for that
        attr_accessor :place

        # @param top [Integer] the highest id that is known here
        # @param writer [String] name under which NATS knows the messages of this engine
        # @return [Hash{String => String}]
        def headers(top, writer)
          { "Nats-Msg-Id" => "#{writer}:#{number}", Stored::HEADER => "#{top} #{kind} #{writer} #{number}" }
        end
      end

      # Of one engine.
      # @api private
      class Stream
        include Losses
        include Rewind

        # Seconds until the hub is offered what it did not take; more each time.
        RETRY = 0.05
        RETRY_MOST = 1.0
        # Bytes of old messages that are collected until all are here.
        CATCH_MAX = 64 << 20
        # Channels whose messages are counted while they are collected, whoever follows them.
        COUNTED = 50_000
        OLDEST = [2, 9].freeze
        # Seconds that a replica may be behind the leader without a message.
        LAG = 5

        # @param names [Names]
        # @param interests [Interests]
        # @param outlet [#item, #give, #begins_at, #again, #tell] the engine
        # @param lineage [Queued::Lineage] NATS knows the messages of the engine by its name
        def initialize(names, interests, outlet, lineage:, messages:, bytes:, replicas:, storage:)
          @names = names
          @interests = interests
          @outlet = outlet
          @wish = Wish.new(messages, bytes, replicas, storage)
          @lineage = lineage
          @tracks = {}
          @written = {}
          @gaps = Gaps.new(@tracks, outlet)
          @refusals = 0
          @copies = Copies.new(names, self)
          @awaited = Awaited.new(outlet)
          @top = @floor = 0
          forget_link
        end

        # ---- from the hub ----

        # @param channel [String]
        # @param after [Integer] 1: from now on; else what came after this id
        # @return [void]
        def follow(channel, after)
          return if @tracks[channel]

          @tracks[channel] = Track.new(after > 1 ? after : @top)
          tell_begin
          return unless after > 1 && (@began.nil? || after < @top)

          @rewind = [@rewind || 0, after].max
          @is_rewinding = false
        end

        # @return [void]
        def forget(channel)
          @tracks.delete(channel)
          @gaps.forget(channel)
          @copies.forget(channel)
        end

        # @return [void]
        def copy(channel)
          follow(channel, 1)
          @copies.want(channel)
        end

        # @param terms [Queued::Terms]
        # @return [void]
        def keep(terms)
          @is_unknown = true if @wish.keep(terms)
        end

        # ---- the connection ----

        # @param requests [Requests]
        # @param link [Link]
        # @return [void]
        # @raise [Link::Refused]
        def begin(requests, link)
          version = link.info["version"].to_s[/\A[\w.+-]{1,40}/].to_s
          if (version.split(".").map(&:to_i) <=> OLDEST).negative?
            raise Link::Refused, "NATS #{version} is too old: streams need #{OLDEST.join(".")} or newer"
          end

          @requests = requests
          @link = link
          @leader = Leader.new(requests, @names)
          learn
        end

        # @return [void]
        def forget_link
          @requests = @link = @leader = @consumer = nil
          @is_live = @is_asking = @is_doubted = false
          @caught = []
          @copies.forget_link
        end

        # @return [Boolean] whether all there is in the stream has been read here, and it keeps what the rules say
        def live?
          @is_live && !@is_asking && !@is_unknown
        end

        # Asks what is to be asked.
        # @return [void]
        def ask
          learn if @is_unknown && !@is_asking
          return consume if @rewind && !@is_rewinding && @consumer
          return look_again if (@retry_at && now >= @retry_at) || late?

          @copies.ask(@requests) if @is_live
        end

        # @return [Numeric, nil] seconds until {#ask} is to be called again
        def pause
          return unless @requests

          [@retry_at && [@retry_at - now, 0].max, @consumer&.patience, (@awaited.patience(@consumer.name) if @consumer),
           (@copies.pause if @is_live)].compact.min
        end

        # ---- what goes out ----

        # @param entry [Kept]
        # @yieldparam refusal [Hash, nil] nil: the stream has it. After one that passes it is written again.
        # @return [void]
        def write(entry)
          headers = entry.headers(@top, @lineage.name)
          @written[entry.number] = false
          @awaited.add(entry) if entry.block
          @requests.ask(@names.kept(entry.channel), entry.bytes, headers: headers) do |answer|
            refusal = Answers.refusal(answer)
            next yield(refusal) if Answers.later?(refusal)

            @written.delete(entry.number)
            refusal ? @awaited.drop(entry) : stored(entry, answer["seq"])
            yield refusal
          end
        end

        # @return [Boolean] it has come back, so its answer was lost
        def written?(entry)
          return false unless @written[entry.number]

          stored(entry, 0)
          @written.delete(entry.number)
        end

        # @return [Integer] messages that NATS has, whose publisher waits until they were read
        def unread
          @awaited.unread
        end

        # ---- what comes ----

        # @param message [Message]
        # @return [void]
        def take(message)
          return @copies.take(message) if message.sid.start_with?("c")
          return if @consumer&.name != message.sid || (@rewind && !@is_rewinding) # all of it is read again
          return control(message) if message.status

          stored = Stored.of(message, @names) or return
          return look_again unless @consumer.next?(stored)

          read(stored)
        end

        # @param channel [String]
        # @return [Track, nil]
        def track(channel)
          @tracks[channel]
        end

        # @return [Integer] id of the newest message of the stream, as far as it was read
        attr_reader :top
        # @return [Integer] id at which the stream begins
        attr_reader :began
        # @return [Integer] id up to which the stream may have lost messages that it had acknowledged
        attr_reader :floor

        # @return [Integer] messages that the stream keeps of a channel
        def messages
          @config["max_msgs_per_subject"].to_i
        end

        # @return [Boolean] whether a consumer may read at a node that has not all of it
        def replicas?
          @config["num_replicas"].to_i > 1
        end

        # @return [Leader]
        attr_reader :leader

        # @return [Integer] microseconds that the stream keeps messages; 0: no limit
        def age_us
          @config["max_age"].to_i / 1000
        end

        # @see Nats#give
        def give(...)
          @outlet.give(...)
        end

        # @param text [String] why JetStream does not do something
        # @return [void]
        def refused(text)
          @outlet.refused(text)
        end

        # Asks for the state of the stream.
        def info(&)
          @requests.ask("$JS.API.STREAM.INFO.#{@names.stream}", &)
        end

        private

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        # ---- the stream ----

        def learn
          @is_asking = true
          @is_unknown = false
          Setup.new(@requests, @names, @wish).find do |answer|
            @is_asking = false
            @config = answer["config"]
            arrive(Answers.time(answer["created"]), answer["state"]) unless @consumer
          end
        end

        def arrive(created, state)
          @goal = last = state["last_seq"].to_i
          return start_at(created, state, last) if @began.nil?

          if created != @began
            @gaps.lose_all([created, @top].max)
            @began = created
            @sequence = 0
            @mark = @behind_us = nil
            @awaited.lost(0)
          end
          return consume unless last < @sequence

          @is_doubted ? lose_end(last) : doubt
        end

        def start_at(created, state, last)
          @began = created
          @sequence = last
          @mark_us = [created, last.zero? ? 0 : Answers.time(state["last_ts"])].max
          @top = [@top, @mark_us].max
          @tracks.each_value { |track| track.last = @top if track.last.zero? }
          claim(state)
          consume
        end

        # ---- reading ----

        # From the last message that was read, or before it.
        def consume
          @consumer&.close
          @retry_at = nil
          @is_live = @is_holed = @is_doubted = false
          @caught = []
          @caught_bytes = 0
          @counts = Hash.new(0)
          @is_rewinding = !@rewind.nil?
          @from_us = @rewind || @behind_us
          @read = @from_us ? nil : @sequence
          @goal = [@goal, @sequence].max
          @behind_at = nil
          @consumer = Consumer.new(@names.stream, @requests, **place) do |name, pending|
            ended(0) if pending.zero? && !@is_live && @consumer&.name == name
          end
        end

        def place
          { at: @sequence, from_us: @from_us, is_in_memory: @config["storage"] == "memory" }
        end

        def control(message)
          return look_again unless @consumer.control(message, @link)

          upto = @is_live ? nil : @consumer.upto(message)
          return unless upto
          return live if upto >= @goal

          @behind_at ||= now
          give_up_replica if now - @behind_at > LAG
        end

        # Nothing is pending where the consumer reads. A replica has the last messages a moment later; its signs of life
        # say how far it is.
        def ended(sequence)
          live if sequence >= @goal || !replicas?
        end

        # Another consumer may have another replica.
        def give_up_replica
          @outlet.refused("JetStream: a replica does not have the last messages, and does not get them")
          look_again
        end

        def late?
          @consumer && (@consumer.silent? || @awaited.patience(@consumer.name)&.zero?)
        end

        # Another stream may have the name now, and would take a consumer at any number.
        def look_again
          @consumer&.close
          @consumer = @retry_at = nil
          @is_live = false
          learn unless @is_asking
        end

        def read(stored)
          @behind_at = nil
          return pass_older(stored) if @read.nil? && stored.time_us < @from_us
          return read_old(stored) if @is_rewinding

          go_on_before(stored) unless @read
          return compare(stored) if stored.sequence <= @read

          @is_holed = true if stored.sequence > @read + 1
          collect_anew if @is_live && @is_holed
          @read = stored.sequence
          note_own(stored)
          return take_live(stored) if @is_live

          collect(stored)
          ended(stored.sequence) if stored.pending.zero? && @consumer
        end

        # A limit has removed messages before they came here.
        def collect_anew
          @is_live = false
          @counts = Hash.new(0)
        end

        def collect(stored)
          @caught << stored
          @counts[stored.channel] += 1 if @counts.size < COUNTED || @counts.key?(stored.channel)
          return if (@caught_bytes += stored.bytes) < CATCH_MAX

          release(true)
        end

        def live
          return if @rewind && !@is_rewinding
          return go_on if @is_rewinding

          @is_live = release(false)
          @refusals = 0 if @is_live
        end

        # Gaps first: what a limit removed is before what it left.
        def release(is_part)
          judge
          tell_holes(is_part) if @is_holed
          caught = @caught
          @caught = []
          @caught_bytes = 0
          return later unless @gaps.tell

          @is_holed = false
          @counts.clear unless is_part
          return caught.all? { |stored| take_old(stored) } if @is_rewinding
          return false unless caught.all? { |stored| take_live(stored) }

          @awaited.passed(@sequence, @consumer.name) unless is_part
          true
        end

        def tell_holes(is_part)
          full = @counts.select { |_, count| count >= messages }.keys
          full = @tracks.keys if is_part || full.empty? || @counts.size >= COUNTED || aged? ||
                                 @config["max_bytes"].to_i.positive?
          firsts = @caught.each_with_object({}) { |stored, found| found[stored.channel] ||= stored.id }
          full.each { |channel| @gaps.lose(channel, (firsts[channel] || (@top + 1)) - 1) }
        end

        # Messages after the last one that came here may be too old for the stream.
        def aged?
          age_us.positive? && (@rewind || @top) < (Time.now.to_f * 1_000_000) - age_us
        end

        # Whose id does not ascend is void: its server writes it again.
        def take_live(stored)
          return pass_over(stored) if stored.id <= @top

          track = @tracks[stored.channel]
          return later if stored.channel && (track || @interests.pattern?) && !give_item(track, stored)

          reach(stored)
          @top = stored.id
          @awaited.read(stored.number, stored.id) if @awaited.any? && stored.writer == @lineage.name
          true
        end

        def pass_over(stored)
          is_new = stored.sequence > @sequence
          if is_new && stored.writer == @lineage.name
            @outlet.again(stored.channel, stored.text, stored.kind, @awaited.take(stored.number))
          end
          reach(stored) if is_new
          true
        end

        def reach(stored)
          @sequence, @mark, @mark_us = stored.sequence, stored.id, stored.time_us
        end

        def stored(entry, sequence)
          @awaited.stored(entry, sequence, @consumer&.name, sequence <= @sequence) if entry.block
        end

        def give_item(track, stored)
          item = stored.item
          return false unless @outlet.item(item)

          track&.last = stored.id
          @copies.came(item, stored.bytes)
          true
        end

        # The hub does not take it now; it is read again.
        def later
          @consumer.close
          @consumer = nil
          @is_live = false
          @retry_at = now + [RETRY * (2**@refusals), RETRY_MOST].min
          @refusals = [@refusals + 1, 10].min
          false
        end

        def note_own(stored)
          @written[stored.number] = true if stored.writer == @lineage.name && @written.key?(stored.number)
        end
      end
    end
  end
end
