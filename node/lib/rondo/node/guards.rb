# frozen_string_literal: true

# Which `require`s of a file may fail: Ruby programs try libraries, and go on without them.
# SPDX-License-Identifier: MIT

require "opal"

module Rondo
  module Node
    # Looks at the syntax tree of one file.
    class Guards
      # Inside of these a `require` runs later or may raise.
      GUARDING = %i[rescue def defs if and or].freeze
      private_constant :GUARDING

      # @param source [String]
      def initialize(source)
        @tree = ::Parser::Ruby32.parse(source)
      end

      # @return [Array<String>] what is required only there
      def features
        @guarded = []
        walk(@tree, false)
        @guarded
      end

      private

      def walk(node, guarded)
        return unless node.is_a?(::Parser::AST::Node)

        guarded ||= GUARDING.include?(node.type)
        @guarded << node.children[2].children.first if guarded && requires?(node)
        node.children.each { |child| walk(child, guarded) }
      end

      def requires?(node)
        node.type == :send && node.children[1] == :require && node.children[2]&.type == :str
      end
    end
  end
end
