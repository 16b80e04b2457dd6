# frozen_string_literal: true

# Plots as SVG: bars, and what all plots are made of. They are 400 units wide, so that their text can be
# read on a phone, and have colours for a light and a dark page. Inside of a page they use its styles; a
# picture that is a file of its own brings them along. Plots of waits: waits.rb.
# SPDX-License-Identifier: MIT

module Rondo
  class Bench
    # Draws, and knows the colours.
    module Chart
      WIDTH = 400
      ROW = 40
      # A bar of a chart: what it is of, its length, what is written at its end, least and most of the rounds.
      Bar = Struct.new(:label, :value, :text, :least, :most, keyword_init: true)
      # Colours of the first, second, … server: on a light page and on a dark one.
      SERIES = [%w[#0b6e99 #5cc0ec], %w[#c2571a #f29b5b], %w[#3d7a3f #7fcf82], %w[#8a4fa3 #cf9be6],
                %w[#806b00 #d9c04a]].freeze
      INK = ["#1f2933", "#e6e9ec"].freeze
      SOFT = ["#52606d", "#a9b3bd"].freeze
      LINE = ["#cbd2d9", "#3e4750"].freeze
      PAPER = ["#ffffff", "#14181c"].freeze

      module_function

      # @return [String] CSS, for pages and pictures
      def styles
        rules = [0, 1].map do |dark|
          series = SERIES.each_with_index.map do |colours, index|
            ".s#{index}{fill:#{colours[dark]}}.l#{index}{stroke:#{colours[dark]};fill:none;stroke-width:2}"
          end
          "#{series.join}.ink{fill:#{INK[dark]}}.soft{fill:#{SOFT[dark]}}.line{stroke:#{LINE[dark]}}" \
            ".mark{stroke:#{INK[dark]};stroke-width:1.5}.paper{fill:#{PAPER[dark]}}"
        end
        "#{rules[0]}@media(prefers-color-scheme:dark){#{rules[1]}}"
      end

      # @param title [String]
      # @param bars [Array<Bar>] their order is that of the colours
      # @param note [String, nil] a line below
      # @param alone [Boolean] whether it is a file of its own
      # @return [String]
      def bars(title, bars, note: nil, alone: false)
        most = bars.flat_map { |bar| [bar.value, bar.most] }.compact.max.to_f
        most = 1.0 unless most.positive?
        parts = bars.each_with_index.flat_map { |bar, index| bar_parts(bar, index, most) }
        height = 34 + (bars.size * ROW) + (note ? 20 : 0)
        parts << text(12, height - 8, note, style: "soft") if note
        frame(title, height, parts, alone: alone)
      end

      # @return [String]
      def escape(words)
        words.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(/[\u0000-\u0008\u000b-\u001f]/, "?")
             .gsub(/[&<>"]/, "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;")
      end

      def bar_parts(bar, index, most)
        y = 34 + (index * ROW)
        ends = ->(value) { 12 + (value.to_f / most * (WIDTH - 24)).round(1) }
        parts = [text(12, y + 13, bar.label, size: 13),
                 text(WIDTH - 12, y + 13, bar.text, size: 13, anchor: "end", weight: "bold"),
                 %(<rect class="s#{index % SERIES.size}" x="12" y="#{y + 19}" ) +
                   %(width="#{[ends.call(bar.value) - 12, 1].max.round(1)}" height="10" rx="2"/>)]
        return parts unless bar.least && bar.most

        parts << %(<path class="mark" d="M#{ends.call(bar.least)},#{y + 24}H#{ends.call(bar.most)}"/>)
      end

      # Names below each other.
      #
      # @yieldparam x [Integer] where its mark is
      # @yieldparam y [Integer]
      # @yieldparam index [Integer]
      # @return [Array<String>]
      def legend(names, top)
        names.each_with_index.flat_map do |name, index|
          y = top + (index * 18)
          [yield(52, y, index), text(70, y, name, size: 12)]
        end
      end

      # @return [String]
      def line(x1, y1, x2, y2)
        %(<line class="line" x1="#{x1.round(1)}" y1="#{y1.round(1)}" x2="#{x2.round(1)}" y2="#{y2.round(1)}"/>)
      end

      # @return [String]
      def text(x, y, words, size: 11, style: "ink", anchor: "start", weight: "normal")
        %(<text class="#{style}" x="#{x.round(1)}" y="#{y.round(1)}" font-size="#{size}" text-anchor="#{anchor}" ) +
          %(font-weight="#{weight}">#{escape(words)}</text>)
      end

      # @param parts [Array<String>]
      # @param alone [Boolean] whether it is a file of its own
      # @return [String] the picture
      def frame(title, height, parts, alone: false)
        head = if alone
                 "<style>#{styles}</style><rect class=\"paper\" width=\"#{WIDTH}\" height=\"#{height}\" rx=\"6\"/>"
               end
        size = %( width="#{WIDTH * 3 / 2}" height="#{height * 3 / 2}") if alone
        %(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{WIDTH} #{height}"#{size} role="img" ) +
          %(font-family="system-ui, Helvetica, Arial, sans-serif">\n<title>#{escape(title)}</title>#{head}\n) +
          "#{[text(12, 20, title, size: 14, weight: "bold"), *parts].join("\n")}\n</svg>\n"
      end
      private_class_method :bar_parts
    end
  end
end
