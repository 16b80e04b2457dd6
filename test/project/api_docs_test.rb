# frozen_string_literal: true

# The API documentation (`rake docs`): YARD understands all of it, and describes every public method,
# of the classes that are written in C, too.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "tmpdir"
require "yard"

class ApiDocsTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  IN_C = %w[Client Client#subscribe Client#event Stream Stream#<< Input Input#gets Connection Scoreboard Scoreboard#get
            Scoreboard::STATES ProcessTree Error BodyError].freeze

  # Reading all of it takes seconds: once is enough.
  def test_every_public_method_is_described
    Dir.mktmpdir do |folder|
      words = %W[doc --no-output --quiet --no-cache -b #{folder}/found]
      output, = Open3.capture2e(RbConfig.ruby, Gem.bin_path("yard", "yard"), *words, chdir: ROOT)
      assert_empty output, "YARD does not understand it"
      YARD::Registry.load!("#{folder}/found")
    end
    assert_empty methods_without_words
    assert_empty(IN_C.reject { |path| YARD::Registry.at("Rondo::#{path}")&.docstring&.blank?(false) == false })
  ensure
    YARD::Registry.clear
  end

  private

  def methods_without_words
    YARD::Registry.all(:method).select do |method|
      method.visibility == :public && method.name != :inspect && !method.is_attribute? && method.docstring.blank?(false)
    end.map(&:path)
  end
end
