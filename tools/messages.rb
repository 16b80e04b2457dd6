# frozen_string_literal: true

# Finds messages in sources: string literals of more than one word, outside of comments.
# tools/gen_messages makes a list of them.
# SPDX-License-Identifier: MIT

require "ripper"

module Messages
  # Two words, or a word and a value.
  SENTENCE = /[\w,:)}`'".*!|-] +[`'"(#\w%*\\]/

  # @param path [String] says which language it is
  # @param source [String]
  # @return [Array<String>] in the order of the source, without repetitions
  def self.of(path, source)
    texts = path.match?(/\.(?:c|h|def)\z/) ? CTexts.new(source).all : RubyTexts.new(source).all
    texts.grep(SENTENCE).uniq
  end

  # String literals of a C source. Those that follow each other are one, with the macro between them.
  class CTexts
    LITERAL = /"(?:\\.|[^"\\\n])*"/
    COMMENT_OR_LITERAL = %r{#{LITERAL}|/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\\n])+'}m
    JOINED = /#{LITERAL}(?:\s*(?:[A-Z]\w+)?\s*#{LITERAL})*(?:\s*PRI\w+)?/
    # Texts that only programmers see.
    NO_MESSAGE = /^[ \t]*#[ \t]*(?:include|error).*|\b(?:_Static_assert|static_assert|assert)\([^;]*;/

    def initialize(source)
      @source = source
    end

    def all
      code = @source.gsub(COMMENT_OR_LITERAL) { |found| found.start_with?('"') ? found : " " }
      code.gsub(NO_MESSAGE, "").scan(JOINED).map { |text| joined(text) }
    end

    private

    def joined(text)
      text.scan(/(#{LITERAL})|([A-Z]\w+)/).map { |literal, macro| literal ? literal[1..-2] : "<#{macro}>" }.join
    end
  end

  # String literals of a Ruby source, here-documents among them. Computed parts stay as they are written: "#{name} is
  # missing".
  class RubyTexts
    # Lists of words, which are not messages.
    WORDS = %i[on_qwords_beg on_words_beg on_qsymbols_beg on_symbols_beg].freeze
    STRING_ENDS = %i[on_tstring_end on_label_end].freeze
    # Tokens between two literals that form one.
    JOINT = %i[on_sp on_ignored_nl].freeze

    def initialize(source)
      @tokens = Ripper.lex(source).map { |token| [token[1], token[2]] }
      @texts = []
    end

    def all
      read until @tokens.empty?
      @texts
    end

    private

    # Takes one token, or a literal that begins with it.
    def read
      type, text = @tokens.shift
      case type
      when :on_tstring_beg then literal
      when *WORDS then content(*STRING_ENDS)
      when :on_regexp_beg then content(:on_regexp_end)
      when :on_symbeg then content(*STRING_ENDS) if @tokens.dig(0, 0) == :on_tstring_content
      when :on_tstring_content, :on_embexpr_beg then heredoc(type, text)
      end
    end

    def literal
      text = content(*STRING_ENDS)
      while @tokens.drop_while { |type, _| JOINT.include?(type) }.dig(0, 0) == :on_tstring_beg
        @tokens.shift while JOINT.include?(@tokens[0][0])
        @tokens.shift
        text << content(*STRING_ENDS)
      end
      @texts << text
    end

    def heredoc(type, text)
      @tokens.unshift([type, text])
      @texts << content(:on_heredoc_end)
    end

    def content(*endings)
      text = +""
      until @tokens.empty?
        type, part = @tokens.shift
        return text if endings.include?(type)

        text << part unless type == :on_ignored_sp # the indentation of <<~
        text << code if type == :on_embexpr_beg
      end
      text
    end

    # The code of one #{}, and the literals in it on their own.
    def code
      text = +""
      until @tokens.empty?
        type = @tokens[0][0]
        before = @tokens.dup
        read
        text << before.take(before.size - @tokens.size).map(&:last).join
        return text if type == :on_embexpr_end
      end
      text
    end
  end
end
