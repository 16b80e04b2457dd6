# frozen_string_literal: true

# The API documentation (`rake docs`): YARD understands all of it, and describes every public method,
# of the classes that are written in C, too.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/read_source"

class ApiDocsTest < Minitest::Test
  include ReadSource

  IN_C = %w[Client Client#subscribe Client#event Stream Stream#<< Input Input#gets Connection Scoreboard Scoreboard#get
            Scoreboard::STATES ProcessTree Error BodyError].freeze

  def test_every_public_method_is_described
    read_the_source
    assert_empty methods_without_words
    assert_empty(IN_C.reject { |path| YARD::Registry.at("Rondo::#{path}")&.docstring&.blank?(false) == false })
  end

  private

  def methods_without_words
    YARD::Registry.all(:method).select do |method|
      method.visibility == :public && method.name != :inspect && !method.is_attribute? && method.docstring.blank?(false)
    end.map(&:path)
  end
end
