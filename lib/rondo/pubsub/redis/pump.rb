# frozen_string_literal: true

# The thread of a Redis engine: keeps its two connections, one that is subscribed and one for
# everything else, and moves what the engine has queued. Nothing else ever waits for Redis.
#
#   (nothing) ──▶ link that is not ready ──▶ ready ──▶ broken: a pause, then anew
#
# Whenever the subscribed connection is new, all subscriptions go out and are confirmed before
# anything that was published leaves.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "rondo/pubsub/queued/pump"
require "rondo/pubsub/redis/link"
require "rondo/pubsub/redis/place"

module Rondo
  module PubSub
    class Redis < Engine
      # Runs until it is told to end.
      # @api private
      class Pump
        include Queued::Pump

        # Commands and bytes under way at once; the rest waits in the queue.
        WINDOW = 1000
        WINDOW_BYTES = 262_144

        # @param place [Place]
        # @param outbox [Outbox]
        # @param subscriptions [Subscriptions]
        # @param mutex [Mutex] of the engine, guards both
        # @param outage [Outage]
        # @param terms [Hash] of {Link#initialize}
        # @yieldparam entry [Entry] that was answered
        # @yieldparam reply [Object]
        def initialize(place, outbox, subscriptions, mutex, outage:, **terms, &on_reply)
          @place = place
          @outbox = outbox
          @subscriptions = subscriptions
          @mutex = mutex
          @outage = outage
          @terms = terms
          @on_reply = on_reply
          open_waker
        end

        # What was refused was not executed.
        # @return [Array<Array(Entry, Boolean)>] as {Queued::Outbox#requeue} takes them
        def unanswered
          [*(@refused && [[@refused, false]]), *@commands&.unanswered]
        end

        private

        def links
          [@commands, @listener]
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        def turn
          open_links unless @outage.pausing?
          feed_links
          wait
          links.compact.each(&:turn)
          @outage.over(@place.found) if whole?
        rescue Link::Broken => e
          is_answer = e.is_a?(Link::Refused) && !@place.elsewhere?(e.message)
          give_up_links(e.message, is_answer, is_denied: e.is_a?(Link::Denied))
        rescue StandardError => e
          give_up_links("#{e.message} (#{e.class})")
        end

        # ---- links ----

        def open_links
          unless @commands
            @place.find
            @commands = @place.link(**@terms)
            @place.watch(@commands)
          end
          wanted = @mutex.synchronize { @subscriptions.wanted? }
          @listener ||= @place.link(**@terms) { |reply| @subscriptions.dispatch(reply) } if wanted
        end

        # One without the other is of no use.
        def give_up_links(reason, is_answer = false, **how) # rubocop:disable Style/OptionalBooleanParameter
          links.each { |link| link&.close }
          @mutex.synchronize do
            @subscriptions.forget_link
            @outbox.requeue(unanswered) if @commands
            @refused = nil
          end
          @commands = @listener = nil
          @place.gone(reason)
          @outage.begin(@place.explain(reason), is_answer, **how)
        end

        def whole?
          return false unless @commands&.ready? && (@listener.nil? || @listener.ready?)

          @mutex.synchronize { @listener || !@subscriptions.wanted? }
        end

        # ---- what goes out ----

        def feed_links
          @mutex.synchronize do
            @subscriptions.send_to(@listener) if @listener&.ready? && @listener.unsent_bytes < WINDOW_BYTES
            feed_commands if @commands&.ready?
          end
        end

        def feed_commands
          while room?
            entry = next_entry or break
            send_entry(entry)
          end
        end

        def room?
          @commands.pending < WINDOW && @commands.unsent_bytes < WINDOW_BYTES
        end

        def next_entry
          @outbox.shift { |waiting| reached?(waiting.change) }
        end

        # Whether a message that is published after this change would come back.
        def reached?(number)
          @subscriptions.reached?(number)
        end

        def send_entry(entry)
          @commands.ask_encoded(entry.bytes, entry) { |reply| take_reply(entry, reply) }
        end

        # What will be taken later goes first then.
        def take_reply(entry, reply)
          refuse(entry, reply.message) if reply.is_a?(Replies::Refusal) && later?(entry, reply)
          answered(entry, reply)
        end

        # Another node takes everything. What Redis itself does not do now is the caller's, unless it is a message.
        def later?(entry, refusal)
          @place.elsewhere?(refusal.message) || (entry.publish && !entry.passing && refusal.passes?)
        end

        def refuse(entry, reason)
          @refused = entry
          raise Link::Refused, reason
        end

        def answered(entry, reply)
          @mutex.synchronize { @outbox.done(entry) }
          @on_reply.call(entry, reply)
        end

        # ---- waiting ----

        def wait
          links = [@commands, @listener].compact
          writing = links.select { |link| link.unsent_bytes.positive? }.map(&:io)
          ready, = IO.select([@waker, *links.map(&:io)], writing, nil, patience(links))
          @waker.read_nonblock(4096, exception: false) if ready&.include?(@waker)
        end

        def patience(links)
          return 0 if links.any?(&:more?)

          # The pause before an attempt is past when there is a link.
          [*links.map(&:patience), (@outage.pause if links.empty?)].compact.min
        end
      end
    end
  end
end
