# frozen_string_literal: true

# What is to be subscribed at Redis, what Redis has confirmed on the connection there is, and which of
# its messages are handed on. {#add}, {#remove}, {#send_to} and {#reached?} are called under the
# engine's mutex, the rest on the engine's thread (pump.rb).
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "rondo/pubsub/redis/link"

module Rondo
  module PubSub
    class Redis < Engine
      # Subscriptions of one engine. Every change has a number, so that a message published after it can
      # wait until Redis has confirmed it. Changes are state: of each channel there is the last one, and none
      # while there is no connection, because a new one begins with all that is wanted.
      # @api private
      class Subscriptions
        VERBS = { [true, false] => "SUBSCRIBE", [false, false] => "UNSUBSCRIBE",
                  [true, true] => "PSUBSCRIBE", [false, true] => "PUNSUBSCRIBE",
                  [true, :shard] => "SSUBSCRIBE", [false, :shard] => "SUNSUBSCRIBE" }.freeze

        # @return [Integer] number of the last change that was asked for
        attr_reader :asked

        # @param on_refusal [#call] gets the channel and the reason
        # @yieldparam channel [String]
        # @yieldparam message [String]
        def initialize(on_refusal:, &deliver)
          @on_refusal = on_refusal
          @deliver = deliver
          @wanted = {}
          @changes = {}
          @asked = 0
          forget_link
        end

        # @return [Boolean] whether there is anything to listen for
        def wanted?
          @wanted.any?
        end

        # @return [Integer] changes that must be sent to Redis
        def pending
          @changes.size
        end

        # @param channel [String]
        # @param is_pattern [Boolean]
        # @return [void]
        def add(channel, is_pattern)
          key = [channel, is_pattern]
          return if @wanted[key]

          @wanted[key] = true
          change(key, true)
        end

        # @return [void]
        def remove(channel, is_pattern)
          key = [channel, is_pattern]
          change(key, false) if @wanted.delete(key)
        end

        # @param number [Integer] of a change
        # @return [Boolean] whether a message published after it would come back
        def reached?(number)
          @wanted.empty? || number <= @confirmed
        end

        # The connection is closed: Redis has forgotten the subscriptions.
        # @return [void]
        def forget_link
          @link = nil
          @changes.clear
          @sent = @confirmed = 0
          @named = {}
          @last = nil
        end

        # What Redis does not know yet.
        # @param link [Link] that is ready
        # @return [void]
        def send_to(link)
          return send_changes if @link.equal?(link)

          @link = link
          @wanted.each_key { |channel, is_pattern| ask(true, channel, is_pattern) }
          confirm_all
        end

        # @param reply [Object] what came on the link
        # @return [Boolean] whether it was a message
        def dispatch(reply)
          return false unless reply.is_a?(Array)

          case reply
          in ["message", String => channel, String => message] then deliver_message(channel, message)
          in ["pmessage", String => pattern, String => channel, String => message]
            deliver_matched(pattern, channel, message)
          else return false
          end
          true
        end

        private

        # A second word about a channel takes back the first, which Redis has not heard.
        def change(key, wanted)
          @asked += 1
          return if @link.nil?

          @changes.key?(key) ? @changes.delete(key) : @changes[key] = wanted
        end

        def send_changes
          return if @sent == @asked

          @changes.each { |(channel, is_pattern), wanted| ask(wanted, channel, is_pattern) }
          @changes.clear
          confirm_all
        end

        # Replies come in order: with this one all before it are there, whatever it says. A Redis whose disk is broken
        # refuses PING and nothing else here.
        def confirm_all
          @sent = number = @asked
          @link.ask(["PING"]) { @confirmed = number if number > @confirmed }
        end

        # What Redis does not allow shall not hold up the rest: such a refusal counts as an answer.
        def ask(wanted, channel, is_pattern)
          @link.ask([VERBS[[wanted, is_pattern]], channel]) do |reply|
            refused = reply.is_a?(Replies::Refusal)
            refuse(channel, reply) if refused
            note(channel, wanted && !refused) unless is_pattern
            @last = nil
          end
        end

        # What passes is asked anew, with everything else, on a new connection.
        def refuse(channel, refusal)
          raise Link::Refused, refusal.message if refusal.passes?

          @on_refusal.call(channel, refusal.message)
        end

        def note(channel, is_subscribed)
          is_subscribed ? @named[channel] = true : @named.delete(channel)
        end

        def deliver_message(channel, message)
          @deliver.call(channel, message)
        end

        # Whoever handles it looks for patterns, too, and Redis sends a message once for the channel's name,
        # then once for each pattern: only the first of these is handed on. It is another message when the
        # same pattern comes again.
        def deliver_matched(pattern, channel, message)
          return if @named[channel.b]

          last_channel, last_message, patterns = @last
          if channel == last_channel && message == last_message && !patterns.include?(pattern)
            return patterns << pattern
          end

          @last = [channel, message, [pattern]]
          @deliver.call(channel, message)
        end
      end
    end
  end
end
