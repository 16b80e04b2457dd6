# frozen_string_literal: true

# What channels are called in NATS, and which of them are subscribed there.
#
#   PREFIX.p.CHANNEL   a channel without a history
#   PREFIX.s.CHANNEL   one that a stream keeps
#   rondo-PREFIX       that stream, where JetStream is used
#
# Of a channel, letters, digits, dashes and underlines stay as they are; any other byte becomes = and two digits.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"

module Rondo
  module PubSub
    class Nats < Engine
      # @api private
      class Names
        PREFIX = /\A[A-Za-z0-9_-]{1,64}\z/
        CHANNEL = /\A(?:[A-Za-z0-9_-]|=\h\h)+\z/

        # @return [String] of the stream
        attr_reader :stream

        # @param prefix [String] of all names; each application in one NATS has its own
        # @raise [ConfigurationError]
        def initialize(prefix)
          unless prefix.is_a?(String) && PREFIX.match?(prefix)
            raise ConfigurationError, "a prefix in NATS has 1 to 64 letters, digits, dashes and underlines, " \
                                      "not #{prefix.inspect}"
          end
          @plain = "#{prefix}.p."
          @kept = "#{prefix}.s."
          @stream = "rondo-#{prefix}"
        end

        # @param channel [String]
        # @return [String] subject of a channel without a history
        def plain(channel)
          @plain + word(channel)
        end

        # @param channel [String]
        # @return [String] subject that the stream keeps
        def kept(channel)
          @kept + word(channel)
        end

        # @return [String] all channels without a history
        def all_plain
          "#{@plain}>"
        end

        # @return [String]
        def all_kept
          "#{@kept}>"
        end

        # @param subject [String]
        # @return [String, nil] nil: somebody else's
        def channel(subject)
          word = subject.delete_prefix(subject.start_with?(@plain) ? @plain : @kept)
          return unless CHANNEL.match?(word)

          name = word.b.gsub(/=(\h\h)/) { Regexp.last_match(1).hex.chr }
          name.force_encoding(Encoding::UTF_8) if name.bytesize <= RelayFrames::CHANNEL_MAX
        end

        private

        def word(channel)
          channel.to_s.b.gsub(/[^A-Za-z0-9_-]/n) { |byte| format("=%02X", byte.ord) }
        end
      end

      # Under the engine's mutex. NATS has other patterns than channels have: with one of them all channels are
      # subscribed, and the hub chooses.
      # @api private
      class Interests
        # @param names [Names]
        def initialize(names)
          @names = names
          @channels = {}
          @patterns = {}
          forget_link
        end

        # @return [void]
        def forget_link
          @number = 0
          @sent = {}
          @by_number = {}
          @wide = nil
          @is_wide = false
          @changed = @channels.dup
        end

        # @param channel [String]
        # @param is_pattern [Boolean]
        # @return [void]
        def add(channel, is_pattern)
          return @patterns[channel] = true if is_pattern

          @channels[channel] = @changed[channel] = true
        end

        # @return [void]
        def remove(channel, is_pattern)
          return @patterns.delete(channel) if is_pattern

          @channels.delete(channel)
          @changed[channel] = true
        end

        # @return [Boolean] whether a pattern is subscribed
        def pattern?
          @patterns.any?
        end

        # @param link [Link]
        # @return [void]
        def send_to(link)
          widen(link)
          @changed.each_key { |channel| change(link, channel) }
          @changed.clear
        end

        # @param message [Message]
        # @return [Boolean] whether it is the only one of its kind that comes
        def take?(message)
          return @is_wide if message.sid == @wide

          !@is_wide && @by_number.key?(message.sid)
        end

        private

        # What comes twice meanwhile is taken once.
        def widen(link)
          if pattern? && @wide.nil?
            number = @wide = (@number += 1).to_s
            link.push("SUB #{@names.all_plain} #{number}\r\n")
            link.ping { @is_wide = @wide == number }
          elsif !pattern? && @wide
            link.push("UNSUB #{@wide}\r\n")
            @wide = nil
            @is_wide = false
          end
        end

        def change(link, channel)
          number = @sent[channel]
          return if @channels.key?(channel) ? number : number.nil?
          return drop(link, channel, number) if number

          number = @sent[channel] = (@number += 1).to_s
          @by_number[number] = channel
          link.push("SUB #{@names.plain(channel)} #{number}\r\n")
        end

        def drop(link, channel, number)
          @sent.delete(channel)
          @by_number.delete(number)
          link.push("UNSUB #{number}\r\n")
        end
      end
    end
  end
end
