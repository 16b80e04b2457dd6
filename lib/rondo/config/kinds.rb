# frozen_string_literal: true

# What a setting of the shell may be set to. A kind reads a value from each of its three sources: an
# object from the configuration file, a word from the command line, the text of an environment
# variable. The rows of options.rb name their kinds.
# SPDX-License-Identifier: MIT

module Rondo
  # The kinds of values.
  # @api private
  module Settings
    # Values of one kind.
    class Kind
      # The value is refused. The message ends a sentence that begins with the name of the setting.
      class Refused < ArgumentError; end

      # @return [String] what a value must be
      attr_reader :words

      # @param words [String, nil] nil: the choices of the row
      # @param word [Proc] reads a word of the command line, as the block does
      # @param variable [Array(String, Proc), nil] what the text of a variable must be, and what reads it;
      #   nil: as a word
      # @param repeats [Boolean] the option may be given several times
      # @yieldparam value [Object] from the configuration file
      # @yieldparam row [Row]
      # @yieldreturn [Object] what is set; ArgumentError and TypeError refuse the value
      def initialize(words = nil, word: nil, variable: nil, repeats: false, &value)
        @words = words
        @value = value || ->(given, _row) { given }
        @word = word || @value
        @variable = variable || [words, @word]
        @repeats = repeats
      end

      # @param row [Row]
      # @param given [Object] from the configuration file; nil where nil is the default
      # @return [Object]
      # @raise [Refused]
      def value(row, given)
        return if given.nil? && row.default.nil?

        read(@value, @words, row, given)
      end

      # @param row [Row]
      # @param word [String] from the command line
      # @param before [Array, nil] what the option was set to so far
      # @return [Object]
      # @raise [Refused]
      def word(row, word, before = nil)
        one = read(@word, @words, row, word)
        @repeats ? [*before, *one] : one
      end

      # @param row [Row]
      # @param text [String] of an environment variable
      # @return [Object]
      # @raise [Refused]
      def variable(row, text)
        one = read(@variable.last, @variable.first, row, text)
        @repeats ? [*one] : one
      end

      private

      def read(reader, words, row, given)
        reader.call(given, row)
      rescue Refused
        raise
      rescue ArgumentError, TypeError
        raise Refused, "must be #{words || row.choices.join(" or ")}, not #{shown(given)}"
      end

      # An address may have a password.
      def shown(given)
        text = given.inspect
        return text unless text.include?("@")

        require "rondo/pubsub/queued/shown"
        given.is_a?(String) ? PubSub::Queued.without_secrets(given).inspect : PubSub::Queued.without_secrets(text)
      end
    end

    SIZES = { "g" => 30, "m" => 20, "k" => 10 }.freeze
    TIMES = { "ms" => 0.001, "s" => 1, "m" => 60, "h" => 3600 }.freeze
    private_constant :SIZES, :TIMES
    # What errors say of sizes and times: the forms that are allowed.
    SIZE_FORMS = 'a size such as "512k", "20m" or "1g"'
    TIME_FORMS = 'a number of seconds, or a time such as "500ms", "30s", "5m" or "1h"'

    # A small number without a unit is refused: iodine takes it as megabytes, and nobody means so few bytes.
    # @param text [String, Integer] "4096", "64b", "64k", "10m", "1g", or the bytes
    # @return [Integer] bytes
    # @raise [ArgumentError]
    def self.bytes(text)
      return text if text.is_a?(Integer)

      match = /\A(\d+)([kmg]?b?)\z/i.match(text.to_s.strip) or raise ArgumentError, "not a size: #{text}"
      number = match[1].to_i
      raise ArgumentError, "a size without a unit: #{text}" if match[2].empty? && number.between?(1, 1023)

      number << SIZES.fetch(match[2][0].to_s.downcase, 0)
    end

    # @param text [String, Numeric] "500ms", "30s", "5m", "1h", or the seconds
    # @return [Float] seconds
    # @raise [ArgumentError, TypeError]
    def self.seconds(text)
      number, unit = text.to_s.strip.match(/\A(\d+(?:\.\d+)?)(ms|s|m|h)\z/i)&.captures
      seconds = number ? number.to_f * TIMES.fetch(unit.downcase) : Float(text)
      raise ArgumentError, "not a time: #{text}" unless seconds.finite?

      seconds
    end

    # @param command [String]
    # @return [Boolean] whether it starts Puma
    def self.puma?(command)
      command.split.any? { |word| File.basename(word) == "puma" }
    end

    # @param bytes [Integer]
    # @return [String] "64", "64k", "10m", "1g"
    def self.size(bytes)
      letter, shift = SIZES.find { |_, bits| bytes >= 1 << bits && (bytes % (1 << bits)).zero? }
      shift ? "#{bytes >> shift}#{letter}" : bytes.to_s
    end

    matching = lambda do |pattern, read|
      ->(text, _row) { pattern.match?(text) ? read.call(text) : raise(ArgumentError) }
    end
    itself = ->(text, _row) { text }
    digits = ["a number", ->(text, _row) { Integer(text, 10) }]
    truth = matching.call(/\A(?:1|0|true|false|yes|no|on|off)\z/, ->(text) { text.match?(/\A(?:1|true|yes|on)\z/) })

    path = ->(value, _row) { File.path(value) }
    seconds_of = method(:seconds)
    seconds = lambda do |value, _row|
      number = seconds_of.call(value)
      raise Kind::Refused, "must not be negative" if number.negative?

      number == number.to_i ? number.to_i : number
    end
    count = lambda do |value, row|
      number = Integer(value.to_s, 10)
      raise Kind::Refused, "must not be negative" if number.negative?
      raise Kind::Refused, "#{value} is above #{row.most} #{row.unit}" if row.most && number > row.most

      number
    end
    # A single value may be written without brackets.
    list = lambda do |value, _row|
      next value if value.nil? || value.is_a?(Array)

      value.is_a?(String) ? [value] : raise(ArgumentError)
    end

    # A Puma file may have it as a number; as text it is octal, as people write it.
    permission = lambda do |value, _row|
      mode = value.is_a?(Integer) ? value : Integer(value, 8)
      raise ArgumentError unless mode.between?(0, 0o777)

      mode
    end

    label = /[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/
    host = /\A(?=.{1,253}\z)(?:#{label}\.)+(?!\d+\z)#{label}\z/
    names = lambda do |value, _row|
      found = [*value].flat_map { |text| text.is_a?(String) ? text.split(/[,\s]+/) : raise(ArgumentError) }
      found.map { |name| name.downcase.delete_suffix(".") }.reject(&:empty?).each do |name|
        raise Kind::Refused, "must be names of hosts, without wildcards, not #{name.inspect}" unless host.match?(name)
      end
    end

    # There may be a password in it.
    nats = lambda do |value, _row|
      next value if value.is_a?(String) && value.match?(%r{\A(nats|tls)://[^/]})

      require "rondo/pubsub/queued/shown"
      shown = PubSub::Queued.without_secrets(value)
      raise Kind::Refused, "must be an address such as nats://HOST:PORT, several with commas, not #{shown}"
    end

    # What is wrong is said without the secret.
    secrets = lambda do |value, _row|
      next if value.nil?

      Signed.check(value)
    rescue ArgumentError => e
      raise Kind::Refused, e.message
    end

    KINDS = {
      any: Kind.new("a value"),
      text: Kind.new("a String") { |value, _row| value.is_a?(String) ? value : raise(ArgumentError) },
      switch: Kind.new("true or false", word: ->(_word, _row) { true }, variable: ["true or false", truth]),
      choice: Kind.new { |value, row| row.choices.find { |name| name.to_s == value.to_s } or raise ArgumentError },
      seconds: Kind.new(TIME_FORMS, &seconds),
      count: Kind.new("a number", &count),
      permission: Kind.new("a permission such as 0640", &permission),
      size: Kind.new(SIZE_FORMS) { |value, _row| Settings.bytes(value) },
      path: Kind.new("a path", word: itself, &path),
      written_file: Kind.new("a path", word: itself, &path),
      folder: Kind.new("a path", word: ->(word, _row) { File.expand_path(word) }, &path),
      paths: Kind.new("a path", word: itself, repeats: true, &path),
      addresses: Kind.new("a list of addresses", word: itself, repeats: true, &list),
      names: Kind.new("a list of names", repeats: true, &names),
      port: Kind.new("a number up to 65535", variable: digits) do |given, _row|
        given.to_s.match?(/\A\d{1,5}\z/) && given.to_s.to_i <= 65_535 ? given.to_s.to_i : raise(ArgumentError)
      end,
      workers: Kind.new("a number or auto",
                        word: matching.call(/\A(?:\d{1,4}|auto)\z/, ->(word) { word == "auto" ? word : word.to_i }),
                        variable: ["a number", ->(text, _row) { text == "auto" ? text : Integer(text, 10) }]),
      secrets: Kind.new("secrets", variable: ["secrets", ->(text, row) { secrets.call(text.split, row) }], &secrets),
      # The verb has options, too, and looks at them itself.
      nats: Kind.new("an address such as nats://HOST:PORT, several with commas", word: nats) { |value, _row| value },
      object: Kind.new("an object")
    }.freeze
  end
end
