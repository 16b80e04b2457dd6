# frozen_string_literal: true

# Templates of Mustache as iodine reads them: no code of a template runs, everything but letters, digits and a few signs
# is escaped, a partial that is missing is an error, and what a lambda returns is not read again. Results are BINARY.
# SPDX-License-Identifier: MIT

require "iodine/mustache_parser"

module Iodine
  # A template that was read once.
  class Mustache
    # Signs that stand for themselves.
    PLAIN = /[^A-Za-z0-9{}~\x80-\xff]/n
    NAMES = { "<" => "&lt;", ">" => "&gt;", "&" => "&amp;", '"' => "&quot;", "'" => "&apos;" }.freeze
    private_constant :PLAIN, :NAMES

    # @overload render(filename, data, template = nil)
    # @overload render(filename: nil, template: nil, data: nil)
    # @return [String]
    # @raise [ArgumentError, TypeError, LoadError, RuntimeError]
    def self.render(*arguments)
      if arguments.size == 1
        options = arguments.first
        Base.check(options, Hash)
        return new(options[:filename], options[:template]).render(options[:data])
      end
      unless arguments.size.between?(2, 3)
        raise ArgumentError, "expecting 2..3 arguments or named arguments."
      end

      filename, data, template = arguments
      new(filename, template).render(data)
    end

    # @overload initialize(filename, template = nil)
    #   @param filename [String, nil] with or without ".mustache"; partials are looked for beside it
    #   @param template [String, nil] in place of the file's content
    # @overload initialize(filename: nil, template: nil)
    # @raise [ArgumentError, TypeError, LoadError, RuntimeError]
    def initialize(*arguments)
      filename, template = names_in(arguments)
      raise ArgumentError, "need either template contents or file name." if filename.nil? && template.nil?

      Base.check(template, String) unless template.nil?
      Base.check(filename, String) unless filename.nil?
      @parts = template ? Parser.new(template, filename).parts : Parser.of_file(filename, nil).parts
    end

    # @param data [Object] a Hash, whose Symbols go before its Strings; or an object, whose methods are called
    # @return [String]
    def render(data)
      String.new(encoding: Encoding::BINARY).tap { |out| write(@parts, [data], out) }
    end

    private

    def names_in(arguments)
      return arguments.first.values_at(:filename, :template) if arguments.size == 1 && arguments.first.is_a?(Hash)
      return arguments if arguments.size.between?(1, 2)

      raise ArgumentError, "expecting 1..2 arguments or named arguments."
    end

    def write(parts, stack, out)
      parts.each do |part|
        case part.kind
        when :text then out << part.text
        when :value, :raw then write_value(part, stack, out)
        when :partial then write(part.parts, stack, out)
        when :section then write_section(part, stack, out)
        when :inverted then write(part.parts, stack, out) if empty?(find(part.text, stack))
        end
      end
    end

    def write_value(part, stack, out)
      value = find(part.text, stack)
      return if value.nil? || value == false

      value = Base.guard { value.call } if !value.is_a?(String) && value.respond_to?(:call)
      text = value.to_s.b
      text = escape(text, part.padding) if part.kind == :value
      out << text
    end

    # Inside a partial each line begins where the partial does.
    def escape(text, padding)
      lines = padding.empty? ? [text] : text.split("\n", -1)
      lines.map { |line| line.gsub(PLAIN) { |sign| NAMES[sign] || "&##{sign.ord};" } }.join("\n#{padding}")
    end

    def write_section(part, stack, out)
      value = find(part.text, stack)
      return if empty?(value)
      return value.each { |element| write(part.parts, [element, *stack], out) } if value.is_a?(Array)
      return out << Base.guard { value.call(part.source.b) }.to_s.b if value.respond_to?(:call)

      write(part.parts, value.is_a?(Hash) ? [value, *stack] : stack, out)
    end

    def empty?(value)
      value.nil? || value == false || value == []
    end

    # The whole name, then what stands before the first dot, and the rest in it.
    def find(name, stack)
      dig(name) { |part| in_stack(part, stack) }
    end

    def dig(name)
      found = yield name
      return found unless found.nil? && name.include?(".")

      first, rest = name.split(".", 2)
      object = yield first
      dig(rest) { |part| in_object(object, part) } unless object.nil?
    end

    def in_stack(name, stack)
      stack.each do |object|
        found = in_object(object, name)
        return found unless found.nil?
      end
      nil
    end

    def in_object(object, name)
      if object.is_a?(Hash)
        return object[name.to_sym] if object.key?(name.to_sym)
        return object[name] if object.key?(name)
      elsif name == "."
        return object
      end
      Base.guard { object.public_send(name) } if !name.empty? && object.respond_to?(name)
    end
  end
end
