# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Bars of a column of the README's tables, whose figures are those of bench/results.

require_relative "../../lib/rondo/command/bench/chart"

module SpeedPicture
  README = File.expand_path("../../README.md", __dir__)

  module_function

  # @param column [String] its title in the first table that has it
  # @param title [String] of the picture
  # @param note [String] below
  # @return [String] SVG
  def draw(column, title, note)
    head, *rows = table_with(column)
    at = head.index(column)
    bars = rows.filter_map do |row|
      text = row[at].to_s
      Rondo::Bench::Chart::Bar.new(label: row[0].delete("*"), value: text.to_f, text: text) if text.match?(/\A[\d.]+\z/)
    end
    Rondo::Bench::Chart.bars(title, bars, note: note, alone: true)
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
