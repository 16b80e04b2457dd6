# frozen_string_literal: true

# The way of a request: the numbered steps of a section of ARCHITECTURE, one row each, and the files that they
# name, in the column of their folder. Beside a step are the statuses that it may refuse with.
# SPDX-License-Identifier: MIT

require_relative "sources"
require_relative "svg"

class WayPicture
  LEFT = 214
  TOP = 78
  LINE = 28 # from one file to the next one below it

  # Sections of error.def, by the title of the step that returns their errors.
  REFUSALS = {
    "Parse the head" => ["Lines", "Request line", "Fields", "What the fields mean"],
    "Collect the body" => ["Body", "Resources"]
  }.freeze
  # Without a step of its own: whatever waits for the client, or not about HTTP/1.1.
  ELSEWHERE = ["Time", "Forwards", "HTTP/2", "The handshake of TLS", "The WebSocket handshake",
               "The WebSocket handshake of outgoing connections"].freeze

  def self.draw(heading)
    new(heading).draw
  end

  def initialize(heading)
    @heading = heading
    @steps = Sources.steps(heading)
    @columns = Sources.layers & @steps.flat_map { |_, files| files.map { |file| File.dirname(file) } }
    left = LEFT
    @places = @columns.to_h do |folder|
      width = files_of(folder).map { |file| Svg.width(file, size: 12, font: Svg::MONO) }.max + 13
      width = [width, 60].max
      [folder, [left, width].tap { left += width + 3 }]
    end
    @width = left + 6
    check_sections
  end

  def draw
    heights = @steps.map { |step| height_of(step) }
    @svg = Svg.new(@width.ceil, TOP + heights.sum + 54, "#{@heading}: its steps and their files")
    @svg.text(20, 30, @heading, size: 15, weight: "bold")
    columns(heights.sum)
    rows(heights)
    @svg.note(20, TOP + heights.sum + 26,
              "Columns are folders of ext/rondo. A number is a status that the step may refuse with (base/error.def);",
              "408 is the answer when a head or a body is late.")
    @svg.to_s
  end

  private

  def files_of(folder)
    @steps.flat_map(&:last).select { |file| File.dirname(file) == folder }.map { |file| File.basename(file) }
  end

  def check_sections
    unknown = Sources.refusals.keys - REFUSALS.values.flatten - ELSEWHERE
    raise "error.def: #{unknown.join(", ")}: at which step? See tools/pictures/way.rb" if unknown.any?

    missing = REFUSALS.keys - @steps.map(&:first)
    raise "ARCHITECTURE: no step #{missing.join(", ")} in \"#{@heading}\"" if missing.any?
  end

  def height_of((_, files))
    most = files.group_by { |file| File.dirname(file) }.values.map(&:size).max || 1
    [most * LINE + 18, 66].max
  end

  def columns(height)
    @places.each do |folder, (x, width)|
      colour = Sources.binding_layers.include?(folder) ? :ruby : :frame
      @svg.rect(x, TOP - 30, width, height + 34, colour)
      @svg.text(x + width / 2, TOP - 12, folder, anchor: "middle", weight: "bold")
    end
  end

  def rows(heights)
    middles = heights.each_index.map { |index| TOP + heights.take(index).sum + heights[index] / 2 }
    middles.each_cons(2) { |one, other| @svg.arrow([34, one + 12], [34, other - 12]) }
    @steps.each_with_index { |step, index| row(step, index, middles[index] - heights[index] / 2, heights[index]) }
  end

  def row((title, files), index, y, height)
    step(title, index, y + height / 2)
    @svg.arrow([20, y], [@width - 20, y], head: false, dashed: true) if index.positive?
    files.group_by { |file| File.dirname(file) }.each do |folder, own|
      top = y + (height - own.size * LINE) / 2
      own.each_with_index { |file, place| file(folder, File.basename(file), top + place * LINE) }
    end
  end

  def step(title, index, middle)
    statuses = REFUSALS.fetch(title, []).flat_map { |section| Sources.refusals.fetch(section) }.uniq.sort
    @svg.dot(34, middle, 12)
    @svg.text(34, middle + 5, (index + 1).to_s, anchor: "middle", weight: "bold", fill: "#ffffff")
    lines = statuses.each_slice(4).map { |some| some.join(" ") }
    @svg.text(54, middle + 5 - lines.size * 8, title, weight: "bold")
    lines.each_with_index do |line, place|
      @svg.note(54, middle + 21 - lines.size * 8 + place * 15, place.zero? ? "or #{line}" : line)
    end
  end

  def file(folder, name, y)
    x, width = @places.fetch(folder)
    @svg.box(x + 3, y + 3, width - 6, LINE - 6, [name])
  end
end
