# frozen_string_literal: true

# Reads templates of Mustache (mustache.rb) into parts. A tag alone on its line takes the line with it, unless it is a
# value.
# SPDX-License-Identifier: MIT

module Iodine
  class Mustache
    # One template, or one partial.
    # @api private
    class Parser
      # Text, a value, a section or a partial.
      Part = Struct.new(:kind, :text, :padding, :parts, :source, keyword_init: true)
      # Of sections and partials in each other.
      DEEPEST = 82
      # Kinds of tags by their sign.
      KINDS = { "#" => :section, "^" => :inverted, "/" => :close, "!" => :comment, ">" => :partial, "=" => :delimiters,
                "&" => :raw, "{" => :raw }.freeze

      # @param name [String]
      # @param beside [String, nil] another template
      # @param options [Hash] of {#initialize}
      # @return [Parser]
      # @raise [LoadError] there is no such file
      def self.of_file(name, beside, **options)
        names = [name, "#{name}.mustache"]
        names = [*names.map { |file| File.join(File.dirname(beside), file) }, *names] if beside
        path = names.find { |each| File.file?(each) } or raise LoadError, "Iodine::Mustache template not found."
        new(File.read(path), path, **options)
      end

      # @return [Array<Part>]
      attr_reader :parts

      # @param source [String]
      # @param path [String, nil] where it comes from
      # @param padding [String] before each of its lines
      # @param depth [Integer]
      # @raise [RuntimeError, LoadError]
      def initialize(source, path, padding: "", depth: 0)
        raise "Iodine::Mustache element nesting too deep." if depth > DEEPEST

        @source = padding.empty? ? source.b : source.b.gsub(/^(?!\z)/, padding)
        @path = path
        @padding = padding
        @depth = depth
        @open = "{{"
        @close = "}}"
        @at = 0
        @sections = [] # those that are open, with where their text begins
        @lists = [[]]
        read
        @parts = @lists.first
      end

      private

      def mismatch
        raise "Iodine::Mustache template error, closure mismatch."
      end

      def read
        while (start = @source.index(@open, @at))
          kind, name, stop = tag(start)
          text_end, stop, indent = alone(kind, start, stop)
          add_text(@source[@at...text_end])
          @at = stop
          add(kind, name, text_end, indent)
        end
        add_text(@source[@at..])
        mismatch unless @sections.empty?
      end

      # @return [Array(Symbol, String, Integer)] kind, name, and where the tag ends
      def tag(start)
        inside = start + @open.size
        kind = KINDS.fetch(@source[inside], :value)
        closing = "#{{ "=" => "=", "{" => "}" }[@source[inside]]}#{@close}"
        stop = @source.index(closing, inside) or mismatch
        name = @source[(kind == :value ? inside : inside + 1)...stop].strip
        [kind, name, stop + closing.size]
      end

      # @return [Array(Integer, Integer, String)] where the text in front ends, where the next begins, and the blanks
      #   before a tag that is alone on its line
      def alone(kind, start, stop)
        return [start, stop, ""] if %i[value raw].include?(kind)

        line = (start.zero? ? nil : @source.rindex("\n", start - 1)).to_i
        line += 1 if @source[line] == "\n" && line < start
        indent = @source[line...start]
        behind = @source[stop..][/\A[ \t]*(?:\r?\n|\z)/]
        return [start, stop, ""] unless line >= @at && indent.match?(/\A[ \t]*\z/) && behind

        [line, stop + behind.size, indent]
      end

      def add_text(text)
        @lists.last << Part.new(kind: :text, text: text) unless text.empty?
      end

      def add(kind, name, before, indent)
        case kind
        when :value, :raw then @lists.last << Part.new(kind: kind, text: name, padding: @padding)
        when :section, :inverted then open_section(kind, name)
        when :close then close_section(name, before)
        when :partial then add_partial(name, indent)
        when :delimiters then @open, @close = name.split(/\s+/, 2)
        end
      end

      def open_section(kind, name)
        raise "Iodine::Mustache element nesting too deep." if @sections.size + @depth > DEEPEST

        @sections << [name, @at]
        @lists.last << Part.new(kind: kind, text: name, parts: [])
        @lists << @lists.last.last.parts
      end

      def close_section(name, before)
        opened, from = @sections.pop
        mismatch unless opened == name
        @lists.pop
        @lists.last.last.source = @source[from...before]
      end

      def add_partial(name, indent)
        partial = Parser.of_file(name, @path, padding: indent, depth: @depth + 1)
        @lists.last << Part.new(kind: :partial, text: name, parts: partial.parts)
      end
    end
    private_constant :Parser
  end
end
