# frozen_string_literal: true

# iodine's lenient parser of JSON: comments, hexadecimal and binary numbers, and missing or surplus commas are no
# errors. What stands behind the first value is not read. Strings are BINARY.
# SPDX-License-Identifier: MIT

require "strscan"

module Iodine
  # JSON.
  module JSON
    # Options of Ruby's JSON that mean nothing here.
    IGNORED = %i[max_nesting allow_nan create_additions object_class array_class].freeze
    private_constant :IGNORED

    class << self
      # @overload parse(text, options = {})
      #   @param text [String]
      #   @param options [Hash] symbolize_names: true
      #   @return [Object]
      #   @raise [EncodingError] it is not JSON
      #   @raise [TypeError]
      def parse(*arguments)
        raise TypeError, "function requires supports up to two arguments." if arguments.size > 2
        raise TypeError, "function requires at least one argument." if arguments.empty?

        text, options = arguments
        if arguments.size > 1
          Base.check(options, Hash)
          (IGNORED & options.compact.keys).each { |name| Base.warning("#{name} ignored on this JSON implementation.") }
        end
        Base.check(text, String)
        Parser.new(text, symbols: options && options[:symbolize_names] == true).value
      end
      alias parse! parse
    end

    # One text. Runs are skipped by a search for what ends them: an expression that repeats remembers each place of a
    # long text, with fifty bytes for one.
    # @api private
    class Parser
      DEEPEST = 512
      ESCAPES = { "n" => "\n", "r" => "\r", "t" => "\t", "b" => "\b", "f" => "\f" }.freeze
      WORDS = { "null" => nil, "true" => true, "false" => false, "NaN" => Float::NAN, "nan" => Float::NAN,
                "Infinity" => Float::INFINITY }.freeze
      WORD = Regexp.union(WORDS.keys)

      # @param text [String]
      # @param symbols [Boolean] as keys
      def initialize(text, symbols:)
        @scanner = StringScanner.new(text.b)
        @symbols = symbols
        @depth = 0
      end

      # @return [Object]
      # @raise [EncodingError]
      def value
        skip_blanks
        return nested { object } if @scanner.skip(/\{/n)
        return nested { array } if @scanner.skip(/\[/n)
        return text(string) if @scanner.skip(/"/n)
        return WORDS[@scanner.matched] if @scanner.skip(WORD)

        number or malformed
      end

      private

      def malformed
        raise EncodingError, "Malformed JSON format."
      end

      def skip_blanks
        nil while skip_run(/[\s,]/n, /(?=[^\s,])/n) || skip_run(%r{//|\#}n, /(?=\n)/n) || skip_comment
      end

      # @return [Boolean, nil] whether there is a run, up to its end or that of the text
      def skip_run(first, last)
        return unless @scanner.match?(first)

        @scanner.skip_until(last) || @scanner.terminate
        true
      end

      def skip_comment
        from = @scanner.pos
        return unless @scanner.skip(%r{/\*}n)

        @scanner.skip_until(%r{\*/}n) or (@scanner.pos = from) && nil
      end

      # @return [String] between its quotes
      def string
        from = @scanner.pos
        while @scanner.skip_until(/["\\]/n)
          return @scanner.string.byteslice(from...(@scanner.pos - 1)) if @scanner.matched == '"'

          @scanner.skip(/./mn)
        end
        malformed
      end

      def nested
        @depth += 1
        malformed if @depth > DEEPEST
        yield.tap { @depth -= 1 }
      end

      def object
        found = {}
        until ends?(/\}/n)
          @scanner.skip(/"/n) or malformed
          key = text(string)
          skip_blanks
          @scanner.skip(/:/n) or malformed
          found[@symbols ? key.force_encoding(Encoding::UTF_8).to_sym : key] = value
        end
        found
      end

      def array
        found = []
        found << value until ends?(/\]/n)
        found
      end

      def ends?(bracket)
        skip_blanks
        @scanner.skip(bracket)
      end

      # A sign without a number is 0, as in iodine.
      def number
        from = @scanner.pos
        sign = @scanner.skip(/-/n)
        kind = number_kind or return sign && 0
        text = @scanner.string.byteslice(from...@scanner.pos)
        return Integer(text, kind) unless kind == :float

        text.sub(/\A-?\K\./, "0.").to_f
      end

      # Skips what follows the sign.
      # @return [Integer, Symbol, nil] what Integer takes as base, :float, or nil: there is no number
      def number_kind
        return 0 if @scanner.skip(/0x(?=\h)/n) && skip_run(/\h/n, /(?=\H)/n)
        return 0 if @scanner.skip(/0b(?=[01])/n) && skip_run(/[01]/n, /(?=[^01])/n)

        whole = skip_digits
        fraction = @scanner.skip(whole ? /\./n : /\.(?=\d)/n)
        return unless whole || fraction

        skip_digits if fraction
        exponent = @scanner.skip(/[eE][+-]?(?=\d)/n) && skip_digits
        fraction || exponent ? :float : 10
      end

      def skip_digits
        skip_run(/\d/n, /(?=\D)/n)
      end

      def text(bytes)
        return bytes unless bytes.include?("\\")

        bytes.gsub(/\\u[dD][89abAB]\h\h\\u[dD][c-fC-F]\h\h|\\u\h{4}|\\x\h\h|\\(.)/mn) do |found|
          next ESCAPES.fetch($1, $1) if $1 && !%w[u x].include?($1)

          high, low = found.scan(/\\[ux](\h+)/).flatten.map(&:hex)
          next $1 unless high

          [low ? 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00) : high].pack("U").b
        end
      end
    end
    private_constant :Parser
  end
end
