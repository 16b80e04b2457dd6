# frozen_string_literal: true

# Lines in SVG over numbers that grow tenfold from mark to mark. Used by scale.rb.
# SPDX-License-Identifier: MIT

require_relative "../tools/pictures/svg"
require_relative "bars"

module Bench
  # A picture of how figures grow.
  class Curves
    # @!attribute name [String]
    # @!attribute points [Array<Array(Numeric, Float)>] each a number of at least 1, and a figure
    Line = Struct.new(:name, :points)

    WIDTH, LEFT, RIGHT, TOP, HEIGHT = 960, 70, 40, 54, 300
    LEGEND = 18

    # @param title [String]
    # @param lines [Array<Line>]
    def initialize(title, lines, drawn_by:)
      @title = title
      @lines = lines
      @drawn_by = drawn_by
      points = lines.flat_map(&:points)
      @tens = Math.log10(points.map(&:first).max).ceil.clamp(1, nil)
      @most = points.map(&:last).max * 1.05
    end

    # @return [String] SVG
    def to_s
      svg = Svg.new(WIDTH, TOP + HEIGHT + 48 + LEGEND * @lines.size, @title, drawn_by: @drawn_by)
      svg.text(LEFT, 30, @title, size: 15, weight: "bold")
      scale(svg)
      @lines.each_with_index { |line, index| draw(svg, line, Bars::FILLS[index % Bars::FILLS.size], index) }
      svg.to_s
    end

    private

    def scale(svg)
      step = @most > 3 ? 1 : 0.5
      (0..(@most / step).floor).each do |index|
        y = y_of(index * step)
        svg.note(LEFT - 8, y + 4, format("%g", index * step), anchor: "end")
        svg.arrow([LEFT, y], [WIDTH - RIGHT, y], head: false, dashed: index.positive?)
      end
      (0..@tens).each { |ten| svg.note(x_of(10**ten), TOP + HEIGHT + 20, (10**ten).to_s, anchor: "middle") }
    end

    def draw(svg, line, colour, index)
      points = line.points.map { |number, figure| [x_of(number), y_of(figure)] }
      svg.curve(points, colour)
      points.each { |x, y| svg.dot(x, y, 3, colour) }
      y = TOP + HEIGHT + 40 + index * LEGEND
      svg.bar(LEFT, y - 10, 12, 12, colour)
      svg.text(LEFT + 20, y, line.name, size: 12)
    end

    def x_of(number)
      LEFT + (WIDTH - LEFT - RIGHT) * Math.log10(number) / @tens
    end

    def y_of(figure)
      TOP + HEIGHT * (1 - figure / @most)
    end
  end
end
