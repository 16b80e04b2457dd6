# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Bars of a column of the README's tables, whose figures are those of bench/results.

require_relative "svg"

module SpeedPicture
  README = File.expand_path("../../README.md", __dir__)
  WIDTH = 620
  # Where bars begin, and how long the longest is.
  LEFT = 240
  LONGEST = 300
  ROW = 30

  module_function

  # @param column [String] its title in the first table that has it
  # @param title [String] of the picture
  # @param note [String] below
  # @return [String] SVG
  def draw(column, title, note)
    rows = figures(column)
    most = rows.map(&:last).map(&:to_f).max
    picture = Svg.new(WIDTH, 78 + (rows.size * ROW), title)
    picture.text(20, 28, title, weight: "bold", size: 15)
    rows.each_with_index { |(name, figure), index| bar(picture, 48 + (index * ROW), name, figure, most) }
    picture.text(20, 64 + (rows.size * ROW), note, size: 12, fill: Svg::SOFT)
    picture.to_s
  end

  def bar(picture, y, name, figure, most)
    length = [LONGEST * figure.to_f / most, 2].max
    picture.text(LEFT - 12, y + 14, name, anchor: "end")
    picture.rect(LEFT, y, length, 20, name == "Rondo" ? :native : :core)
    picture.text(LEFT + length + 8, y + 14, figure, weight: "bold")
  end

  # @return [Array<Array(String, String)>] name and figure
  def figures(column)
    head, *rows = table_with(column)
    at = head.index(column)
    rows.map { |row| [row[0].delete("*`"), row[at]] }.select { |_, figure| figure.to_s.match?(/\A[\d.]+\z/) }
  end

  # @return [Array<Array<String>>] the cells of its lines, without the line below the titles
  def table_with(column)
    tables = File.read(README).lines.chunk_while { |a, b| a.start_with?("|") && b.start_with?("|") }
    lines = tables.find { |all| cells(all.first).include?(column) } or raise "README has no table with #{column}"
    [lines[0], *lines.drop(2)].map { |line| cells(line) }
  end

  def cells(line)
    line.start_with?("|") ? line.strip.delete_prefix("|").delete_suffix("|").split("|", -1).map(&:strip) : []
  end
end
