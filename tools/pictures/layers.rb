# frozen_string_literal: true

# The law of layers: a table of includes. All of them are on its diagonal or to the left.
# SPDX-License-Identifier: MIT

require_relative "sources"
require_relative "svg"

module LayersPicture
  CELL = 23
  LEFT = 362
  TOP = 112

  module_function

  def draw
    layers = Sources.layers
    height = TOP + layers.size * CELL + 64
    svg = Svg.new(LEFT + layers.size * CELL + 56, height, "Folders of ext/rondo and which of them each one includes")
    head(svg, layers)
    layers.each_with_index { |layer, row| row(svg, layers, layer, row) }
    foot(svg, layers, height)
    svg.to_s
  end

  def head(svg, layers)
    svg.text(20, 34, "Folders of ext/rondo, the lowest first", size: 15, weight: "bold")
    svg.note(20, 54, "A dot: files of the row include headers of the column.",
             "Nothing stands to the right of the diagonal.")
    layers.each_with_index do |layer, column|
      svg.text(LEFT + column * CELL + CELL / 2, TOP - 10, layer, turn: -50, weight: "bold")
    end
  end

  def row(svg, layers, layer, row)
    y = TOP + row * CELL
    svg.text(20, y + 18, layer, weight: "bold")
    svg.note(104, y + 18, job(layer))
    layers.each_with_index do |other, column|
      cell(svg, LEFT + column * CELL, y, column <=> row, Sources.includes[layer].include?(other))
    end
  end

  def cell(svg, x, y, side, included)
    return if side.positive?

    svg.rect(x + 1, y + 1, CELL - 2, CELL - 2, side.zero? ? :core : :plain)
    svg.dot(x + CELL / 2, y + CELL / 2, 6) if included
  end

  def foot(svg, layers, height)
    y = TOP + (layers - Sources.binding_layers).size * CELL
    svg.arrow([20, y], [LEFT + layers.size * CELL, y], head: false, dashed: true)
    svg.note(20, height - 34, "Above the broken line there is no Ruby: core.mk builds that part by itself, for unit",
             "tests, sanitizers and fuzzers. tools/check_layers enforces all of this.")
  end

  # As many words of ARCHITECTURE's table as fit.
  def job(layer)
    words = Sources.table("The law of layers").to_h.fetch("`#{layer}`") do
      raise "docs/ARCHITECTURE.md: the table of layers has no row `#{layer}`"
    end
    parts = words.delete("`").gsub(/ \([^)]*\)/, "").split(/(?<=[,;:]) /)
    kept = (1..parts.size).map { |count| parts.take(count).join(" ") }
                          .take_while { |line| Svg.width(line, size: 12) < LEFT - 124 }.last || parts.first[0, 38]
    kept.length < words.length ? "#{kept.sub(/[,;:.]\z/, "")} …" : kept
  end
end
