# frozen_string_literal: true

# The lists of tools/run_asan name classes that are there, each in one of them.
# SPDX-License-Identifier: MIT

require "test_helper"

class SanitizersTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  LISTS = %w[clients with_tls never].freeze

  def test_each_word_names_a_class
    LISTS.each { |list| assert_empty(words(list).reject { |word| classes.grep(/\A#{word}\z/).any? }, list) }
  end

  def test_no_class_is_in_two_lists
    LISTS.combination(2) do |lists|
      one, other = lists.map { |list| classes.grep(/\A(#{words(list).join("|")})\z/) }
      assert_empty one & other, lists.inspect
    end
  end

  private

  # @return [Array<String>] Streams(Back|Boot) as StreamsBack and StreamsBoot
  def words(list)
    text = File.read(File.join(ROOT, "tools/run_asan"))[/^#{list}="(.+?)"/, 1]
    text.scan(/([^|(]+)(?:\(([^)]*)\))?\|?/).flat_map { |name, ends| ends ? ends.split("|").map { |e| name + e } : [name] }
  end

  # @return [Array<String>] without the last word
  def classes
    @classes ||= Dir[File.join(ROOT, "test/{unit,integration,gc,storm}/**/*_test.rb")]
                 .flat_map { |file| File.read(file).scan(/^ *class (\w+)Test\b/).flatten }
  end
end
