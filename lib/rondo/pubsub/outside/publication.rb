# frozen_string_literal: true

# What a program outside of the server posts to the control server's `/publish`, and what it is answered.
# publications.rb publishes it.
# SPDX-License-Identifier: MIT

require "json"
require "rondo"

module Rondo
  # The body of `POST /publish`: a message, or an array of them. All of it is checked before anything is published.
  # @api private
  class Publication
    # A body that is not published: a message of one line.
    class Refused < Error; end

    # Messages of a body.
    MOST = 1000
    # Objects and arrays inside each other.
    DEPTH = 64
    LONGEST_NAME = 1024
    # Bytes of a message, if no setting says it.
    LONGEST = 1 << 20
    # What a message is called, here and by AnyCable.
    NAMES = %w[channel stream].freeze
    FULL = "no room for this message, or nobody serves yet: publish it again later"
    LATE = "the engine did not answer in time: whether these messages are published is not known"

    # @param longest [Integer] bytes of a message: max_publish_bytes
    def initialize(longest: LONGEST)
      @longest = longest
    end

    # @param results [Array<Integer, Boolean, nil>] of each message: its id, true, false if it is not published, nil if
    #   that is not known
    # @param status [Integer, nil] nil: as the results say
    # @param error [String, nil] why
    # @param is_detailed [Boolean] whether the results are in the answer of success, too
    # @return [Array(Integer, String)] status and JSON, one line
    def report(results, status = nil, error = nil, is_detailed: false)
      done = results.to_a.count(&:itself)
      status, error = outcome(results) unless status
      return [200, line({ published: done, **(is_detailed ? { messages: results } : {}) })] if status == 200

      [status, line({ error: error, published: done, messages: results }.compact)]
    end

    # Nothing is published.
    # @param status [Integer]
    # @param error [String]
    # @return [Array(Integer, String)]
    def refusal(status, error, **more)
      [status, line({ error: error, **more })]
    end

    # @param body [String]
    # @return [Array<Array(String, String)>] channels and messages
    # @raise [Refused]
    def parse(body)
      text = body.dup.force_encoding(Encoding::UTF_8)
      raise Refused, "the body is not valid UTF-8" unless text.valid_encoding?

      given = JSON.parse(text, max_nesting: DEPTH)
      return [pair(given, "the message")] unless given.is_a?(Array)
      raise Refused, "a batch has 1 to #{MOST} messages, not #{given.size}" unless given.size.between?(1, MOST)

      given.each_with_index.map { |one, index| pair(one, "message #{index + 1}") }
    rescue JSON::ParserError
      raise Refused, "the body is not JSON, or more than #{DEPTH} levels deep"
    end

    private

    def outcome(results)
      return [200, nil] if results.all?
      return [504, LATE] if results.include?(nil)

      [503, FULL]
    end

    def pair(given, what)
      unless given.is_a?(Hash) && given.size == 2 && given.key?("data") && (name = NAMES.find { |key| given.key?(key) })
        raise Refused, "#{what} must be an object with data, channel (or stream), and nothing else"
      end

      [channel_of(given[name], "#{name} of #{what}"), text_of(given["data"], what)]
    end

    def channel_of(name, what)
      raise Refused, "#{what} must be a string" unless name.is_a?(String)
      raise Refused, "#{what} is a name of the server" if name.start_with?("\0")
      return name if name.bytesize.between?(1, LONGEST_NAME) && name.valid_encoding?

      raise Refused, "#{what} must have 1 to #{LONGEST_NAME} bytes of UTF-8"
    end

    def text_of(data, what)
      text = data.is_a?(String) ? data : JSON.generate(data)
      raise Refused, "data of #{what} is not valid UTF-8" unless text.valid_encoding?
      return text if text.bytesize <= @longest

      raise Refused, "data of #{what} is longer than #{@longest} bytes (max_publish_bytes)"
    rescue JSON::GeneratorError, EncodingError
      raise Refused, "data of #{what} cannot be sent as JSON"
    end

    def line(fields)
      "#{JSON.generate(fields)}\n"
    end
  end
end
