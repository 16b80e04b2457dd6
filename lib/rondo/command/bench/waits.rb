# frozen_string_literal: true

# Plots of waits, on a logarithmic scale: how many requests waited no longer, and each connection of the
# mixed phase.
# SPDX-License-Identifier: MIT

require "rondo/command/bench/chart"

module Rondo
  class Bench
    # Draws with {Chart}.
    module Waits
      # Kinds of connections, and what they are.
      KINDS = { kept: "one request at a time", piped: "several at a time", fresh: "new connections" }.freeze
      # Edges of the curves, and the height of a row of dots.
      LEFT = 52
      RIGHT = 384
      TOP = 50
      BOTTOM = 250
      ROW = 52

      # A logarithmic scale from power to power of ten.
      Scale = Struct.new(:low, :high) do
        # @param values [Array<Numeric>] microseconds
        # @return [Scale] around the values
        def self.of(values)
          least, most = values.select(&:positive?).minmax
          return new(0, 1) unless least

          low = Math.log10([least, 1].max).floor
          new(low, [Math.log10([most, 1].max).ceil, low + 1].max)
        end

        # @return [Float] 0 at the lower end, 1 at the upper one
        def at(value)
          ((Math.log10([value, 1].max) - low) / (high - low)).clamp(0, 1)
        end

        # @yieldparam value [Integer] a power of ten
        # @yieldparam text [String] with its unit
        # @yieldreturn [Array<String>]
        # @return [Array<String>]
        def ticks
          (low..high).flat_map { |power| yield 10**power, "#{10**(power % 3)} #{%w[µs ms s][power / 3] || "ks"}" }
        end
      end

      module_function

      # @param curves [Hash{String => Array<Float>}] microseconds for shares from 0 to 1 in equal steps
      # @return [String] SVG
      def curves(title, curves)
        scale = Scale.of(curves.values.flatten)
        height = ->(value) { (BOTTOM - (scale.at(value) * (BOTTOM - TOP))).round(1) }
        lines = curves.values.each_with_index.map { |values, index| curve(values, index, height) }
        legend = Chart.legend(curves.keys, BOTTOM + 38) do |x, y, index|
          %(<rect class="s#{index}" x="#{x}" y="#{y - 9}" width="10" height="10"/>)
        end
        Chart.frame(title, BOTTOM + 30 + (curves.size * 18), grid(scale, height) + shares + lines + legend)
      end

      # One mark for each connection: its 99th percentile.
      #
      # @param rows [Hash{String => Array<Hash>}] connections of each server
      # @return [String] SVG
      def connections(title, rows)
        scale = Scale.of(rows.values.flatten.map { |line| line[:p99_us] })
        bottom = 40 + (rows.size * ROW)
        across = ->(value) { (20 + (scale.at(value) * 364)).round(1) }
        dots = rows.each_with_index.flat_map { |row, index| dots(row, index, across) }
        legend = Chart.legend(KINDS.values, bottom + 34) { |x, y, index| mark(KINDS.keys[index], x + 5, y - 4, "ink") }
        Chart.frame(title, bottom + 26 + (KINDS.size * 18), columns(scale, across, bottom) + dots + legend)
      end

      def curve(values, index, height)
        points = values.each_with_index.map do |value, at|
          "#{(LEFT + (at.fdiv(values.size - 1) * (RIGHT - LEFT))).round(1)},#{height.call(value)}"
        end
        %(<polyline class="l#{index}" points="#{points.join(" ")}"/>)
      end

      def grid(scale, height)
        scale.ticks do |value, text|
          y = height.call(value)
          [Chart.line(LEFT, y, RIGHT, y), Chart.text(LEFT - 6, y + 4, text, style: "soft", anchor: "end")]
        end
      end

      def shares
        [0, 50, 100].map do |share|
          x = LEFT + (share * (RIGHT - LEFT) / 100.0)
          Chart.text(x, BOTTOM + 18, "#{share} %", style: "soft", anchor: share == 100 ? "end" : "middle")
        end
      end

      def columns(scale, across, bottom)
        sides = { 10**scale.low => "start", 10**scale.high => "end" }
        scale.ticks do |value, text|
          x = across.call(value)
          [Chart.line(x, 34, x, bottom),
           Chart.text(x, bottom + 14, text, style: "soft", anchor: sides.fetch(value, "middle"))]
        end
      end

      def dots((name, lines), index, across)
        y = 48 + (index * ROW)
        answered = lines.select { |line| line[:p99_us].positive? }
        [Chart.text(20, y + 2, name, size: 13, weight: "bold"),
         *answered.map do |line|
           mark(line[:kind], across.call(line[:p99_us]), y + 20, "s#{index % Chart::SERIES.size}")
         end]
      end

      # A shape of its own for each kind, so that they differ without colours, too.
      def mark(kind, x, y, style)
        case kind.to_sym
        when :kept then %(<circle class="#{style}" cx="#{x}" cy="#{y}" r="4" opacity="0.7"/>)
        when :piped
          %(<rect class="#{style}" x="#{(x - 4).round(1)}" y="#{y - 4}" width="8" height="8" opacity="0.7"/>)
        else %(<path class="#{style}" d="M#{x},#{y - 5}l5,9h-10z" opacity="0.7"/>)
        end
      end
      private_class_method :curve, :grid, :shares, :columns, :dots, :mark
    end
  end
end
