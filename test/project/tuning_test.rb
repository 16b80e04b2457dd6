# frozen_string_literal: true

# docs/TUNING.md invents no figure: each number of a row is in the file that the row names, and a row without a file has
# no figure. Its settings exist.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/config/configuration"

class TuningTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  PAGE = File.read(File.join(ROOT, "docs/TUNING.md"))
  def test_each_figure_is_in_its_source
    rows = PAGE[/^## What to set\n(.*?)^## /m, 1].lines.grep(/^\| [`a-zA-Z]/).drop(1).map { |row| row.split("|", -1)[1..-2].map(&:strip) }
    assert(rows.all? { |row| row.size == 4 })
    assert_operator rows.count { |row| !row[2].empty? }, :>, 8
    assert_empty(rows.reject { |row| row[2].empty? == row[3].empty? })
    assert_empty(rows.flat_map { |row| unfounded(row) })
  end

  def test_each_setting_exists
    names = PAGE.scan(/^\| (`[^|]*)\|/).flatten.flat_map { |cell| cell.scan(/`([a-z_0-9]+!?)(?: [^`]*)?`/).flatten }
    names = names.reject { |name| name.start_with?("rondo_") }
    assert_operator names.size, :>, 12
    assert_empty(names.reject { |name| known?(name) })
  end

  private

  # Numbers of up to three digits say what was measured; the pages write those with or without commas.
  def unfounded(row)
    return [] if row[2].empty?

    source = File.read(File.join(ROOT, "docs", row[3][/\((.*)\)/, 1]))
    row[2].scan(/\d[\d,.]*\d/).reject { |number| number.size < 4 || source.include?(number) || plain(source).include?(number.delete(",")) }
  end

  def plain(text)
    text.delete(",")
  end

  def known?(name)
    Rondo::Settings::CORE.key?(name.to_sym) || Rondo::Settings::SHELL.key?(name.to_sym) ||
      Rondo::Configuration::Verbs.method_defined?(name)
  end
end
