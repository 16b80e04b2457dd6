# frozen_string_literal: true

# Groups of bars in SVG: one group for each delay, one bar in it for each way. Used by neverblock.rb.
# SPDX-License-Identifier: MIT

require_relative "../tools/pictures/svg"

module Bench
  # A picture of figures.
  class Bars
    WIDTH = 960
    LEFT = 70
    TOP = 54
    HEIGHT = 300
    LINE = 18
    FILLS = %w[#8fa3b5 #c9d3dc #4a7fb0 #b08a2e #d9b96a #4d8f63 #b4504f].freeze

    # @param title [String]
    # @param groups [Array<String>] their names
    # @param series [Hash{String => Array<Float, nil>}] the figures of each way, one for each group
    def initialize(title, groups:, series:, drawn_by:)
      @title = title
      @groups = groups
      @series = series
      @drawn_by = drawn_by
      @most = series.values.flatten.compact.max || 1.0
    end

    # @return [String] SVG
    def to_s
      svg = Svg.new(WIDTH, TOP + HEIGHT + 48 + LINE * @series.size, @title, drawn_by: @drawn_by)
      svg.text(LEFT, 30, @title, size: 15, weight: "bold")
      scale(svg)
      @groups.each_index { |index| group(svg, index) }
      @series.keys.each_with_index { |name, index| legend(svg, name, index) }
      svg.to_s
    end

    private

    def scale(svg)
      step = 10**Math.log10(@most).floor
      step /= 2 while @most / step < 3
      (0..(@most / step).floor).each do |index|
        y = height_of(index * step)
        svg.note(LEFT - 8, y + 4, (index * step).round.to_s, anchor: "end")
        svg.arrow([LEFT, y], [WIDTH - 20, y], head: false, dashed: index.positive?)
      end
    end

    def group(svg, index)
      width = (WIDTH - LEFT - 20.0) / @groups.size
      bar = (width - 24) / @series.size
      @series.values.each_with_index do |figures, number|
        next unless (figure = figures[index])

        x = LEFT + index * width + 12 + number * bar
        svg.bar(x, height_of(figure), bar - 2, TOP + HEIGHT - height_of(figure), FILLS[number % FILLS.size])
      end
      svg.text(LEFT + (index + 0.5) * width, TOP + HEIGHT + 20, @groups[index], anchor: "middle")
    end

    def legend(svg, name, index)
      y = TOP + HEIGHT + 40 + index * LINE
      svg.bar(LEFT, y - 10, 12, 12, FILLS[index % FILLS.size])
      svg.text(LEFT + 20, y, name, size: 12)
    end

    def height_of(figure)
      TOP + HEIGHT * (1 - figure / @most.to_f)
    end
  end
end
