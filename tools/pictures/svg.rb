# frozen_string_literal: true

# A picture in SVG, drawn with rectangles, lines and text. It has a background of its own, so it reads
# the same on a light and on a dark page. Text is never smaller than 12 pixels at full width, and
# a label that is wider than its box is an error, because it would not be noticed otherwise.
# SPDX-License-Identifier: MIT

class Svg
  INK = "#1f2933"
  SOFT = "#52606d"
  COLOURS = { # fill and edge
    plain: ["#ffffff", "#9aa5b1"], frame: ["#f5f7fa", "#cbd2d9"], core: ["#e3f0fb", "#4a7fb0"],
    ruby: ["#fbe6e6", "#b4504f"], native: ["#e6f5ea", "#4d8f63"], shared: ["#fdf3d8", "#b08a2e"],
    refused: ["#fbeadb", "#b8702f"]
  }.freeze
  # The width of one character at size 1: an average of a wide font's letters for the first, exact for the second.
  WIDTHS = { "Helvetica, Arial, sans-serif" => 0.58, "Menlo, Consolas, 'DejaVu Sans Mono', monospace" => 0.605 }.freeze
  SANS, MONO = WIDTHS.keys

  # @param text [String]
  # @return [Float] pixels it takes, roughly
  def self.width(text, size: 13, font: SANS)
    text.length * size * WIDTHS.fetch(font)
  end

  # @param title [String] for readers who do not see the picture
  # @param drawn_by [String] what a reader of the file has to know
  def initialize(width, height, title, drawn_by: "tools/draw_pictures; change that, then: rake generate")
    @width = width
    @height = height
    @title = title
    @drawn_by = drawn_by
    @parts = []
  end

  # A box with lines of text in its middle.
  #
  # @param lines [Array<String>] the first is bold; one that looks like a file is in its own font
  # @param colour [Symbol] a key of COLOURS
  def box(x, y, width, height, lines, colour: :plain, dashed: false)
    rect(x, y, width, height, colour, dashed: dashed)
    top = y + (height - (lines.size * 17)) / 2.0 + 13
    lines.each_with_index do |line, index|
      style = style_of(line, index)
      line = fitting(line, style, width)
      text(x + width / 2.0, top + index * 17, line, anchor: "middle", **style)
    end
  end

  # A box around others, with its title in the corner.
  def frame(x, y, width, height, title, colour: :frame, dashed: false)
    rect(x, y, width, height, colour, dashed: dashed)
    text(x + 12, y + 20, title, weight: "bold")
  end

  def rect(x, y, width, height, colour, dashed: false)
    fill, edge = COLOURS.fetch(colour)
    @parts << %(<rect x="#{n(x)}" y="#{n(y)}" width="#{n(width)}" height="#{n(height)}" rx="5" ) +
              %(fill="#{fill}" stroke="#{edge}" stroke-width="1.2"#{' stroke-dasharray="5 4"' if dashed}/>)
  end

  def text(x, y, words, size: 13, anchor: "start", weight: nil, font: SANS, fill: INK, turn: nil)
    optional = { "text-anchor" => (anchor unless anchor == "start"), "font-weight" => weight,
                 "transform" => ("rotate(#{turn} #{n(x)} #{n(y)})" if turn) }
    optional = optional.compact.map { |name, value| %( #{name}="#{value}") }.join
    @parts << %(<text x="#{n(x)}" y="#{n(y)}" font-family="#{font}" font-size="#{size}" fill="#{fill}"#{optional}>) +
              "#{escape(words)}</text>"
  end

  # A line through points, with a head at its end, or at both.
  #
  # @param points [Array<Array(Numeric, Numeric)>]
  def arrow(*points, both: false, dashed: false, head: true)
    path = points.map { |x, y| "#{n(x)},#{n(y)}" }.join(" ")
    @parts << %(<polyline points="#{path}" fill="none" stroke="#{SOFT}" stroke-width="1.4") +
              %(#{' stroke-dasharray="5 4"' if dashed}#{' marker-end="url(#head)"' if head}) +
              %(#{' marker-start="url(#head)"' if both}/>)
  end

  # A line through points, in a colour of its own.
  def curve(points, colour)
    path = points.map { |x, y| "#{n(x)},#{n(y)}" }.join(" ")
    @parts << %(<polyline points="#{path}" fill="none" stroke="#{colour}" stroke-width="2"/>)
  end

  # A surface without an edge.
  def bar(x, y, width, height, fill)
    @parts << %(<rect x="#{n(x)}" y="#{n(y)}" width="#{n(width)}" height="#{n(height)}" fill="#{fill}"/>)
  end

  def dot(x, y, radius, fill = COLOURS[:core].last)
    @parts << %(<circle cx="#{n(x)}" cy="#{n(y)}" r="#{n(radius)}" fill="#{fill}"/>)
  end

  # A small note, such as what an arrow means.
  def note(x, y, *lines, anchor: "start")
    lines.each_with_index { |line, index| text(x, y + index * 15, line, size: 12, anchor: anchor, fill: SOFT) }
  end

  # @return [String] the file
  def to_s
    <<~SVG
      <svg xmlns="http://www.w3.org/2000/svg" width="#{@width}" height="#{@height}" viewBox="0 0 #{@width} #{@height}" role="img">
      <title>#{escape(@title)}</title>
      <!-- Drawn by #{@drawn_by} -->
      <defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0,0.5 L10,5 L0,9.5 z" fill="#{SOFT}"/></marker></defs>
      <rect width="#{@width}" height="#{@height}" rx="8" fill="#fcfdfe" stroke="#cbd2d9"/>
      #{@parts.join("\n")}
      </svg>
    SVG
  end

  private

  def style_of(line, index)
    return { size: 12, font: MONO, fill: SOFT } if line.match?(%r{\A[\w/]+\.(?:c|h|rb|def)\z})

    index.zero? ? { weight: "bold" } : { size: 12, fill: SOFT }
  end

  # A file that is too wide loses its folder.
  def fitting(line, style, width)
    measure = style.slice(:size, :font)
    line = File.basename(line) if style[:font] && Svg.width(line, **measure) > width - 8
    raise "#{@title}: \"#{line}\" is wider than its box" if Svg.width(line, **measure) > width - 6

    line
  end

  def n(number)
    number.round(1).to_s.delete_suffix(".0")
  end

  def escape(words)
    words.gsub("&", "&amp;").gsub("<", "&lt;").gsub(">", "&gt;")
  end
end
