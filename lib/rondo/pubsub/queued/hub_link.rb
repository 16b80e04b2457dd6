# frozen_string_literal: true

# Between the hub of a cluster and an engine that keeps messages: as engine_link.rb, with the rules of the history, ids
# and copies (ext/rondo/pubsub/hub.h).
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine_link"
require "rondo/pubsub/queued/kept"

module Rondo
  module PubSub
    module Queued
      # A thread between a socket and this engine, whose methods neither wait nor raise.
      # @api private
      class HubLink < EngineLink
        # @see EngineLink#initialize
        def initialize(engine, socket, log)
          super
          @frames = RelayFrames.new(RelayFrames::ALL_TYPES)
          @rules = {}
          @asked = {}
        end

        # A message of a stream, or a gap. Any thread.
        # @param item [Item]
        # @return [Boolean] false when the hub does not take it now
        def item(item)
          queue(item.text ? message(item) : RelayFrames.gap(item.channel, item.id))
        end

        # No message has come yet: channels begin at this id, and after a restart they go on there.
        # @param id [Integer]
        # @return [Boolean]
        def begins_at(id)
          queue(RelayFrames.begins_at(id))
        end

        # A copy of the newest messages of a channel; see {RelayFrames.copy_begin}.
        # @return [Boolean]
        def copy(channel, floor, now_us, known, items)
          first = RelayFrames.copy_begin(channel, floor, now_us, known, @asked[channel] || 0)
          queue([first, *items.map { |item| message(item) }, RelayFrames.copy_end(channel)].join)
        end

        private

        def message(item)
          text = item.text
          text.force_encoding(item.kind == "t" ? Encoding::UTF_8 : Encoding::BINARY)
          RelayFrames.publish(item.channel, text, item.id)
        end

        def dispatch(frame)
          case frame.type
          when :publish then publish(frame)
          when :subscribe then @engine.subscribe(frame.channel, frame.pattern, frame.id)
          when :unsubscribe then unsubscribe(frame)
          when :keep then keep(frame)
          when :replay then ask_copy(frame)
          end
        end

        # After that no copy comes that was begun for this subscription.
        def unsubscribe(frame)
          @engine.unsubscribe(frame.channel, frame.pattern)
          @asked.delete(frame.channel) unless frame.pattern
        end

        # A copy is for the last request, however many there were.
        def ask_copy(frame)
          @asked[frame.channel] = frame.id
          @engine.copy(frame.channel)
        end

        def keep(frame)
          terms = @rules[frame.id] = Terms.new(*frame.message.unpack(RelayFrames::TERMS))
          @engine.keep(terms) if @engine.respond_to?(:keep)
        end

        def hand(frame, &)
          @engine.publish(frame.channel, frame.message, @rules[frame.id], &)
        end

        # It may have been sent then, and is written once.
        def hand_again(frame, number)
          @engine.publish_again(frame.channel, frame.message, @rules[frame.id], number)
        end
      end
    end
  end
end
