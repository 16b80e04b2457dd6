# frozen_string_literal: true

# Medians, ratios and how figures are written.
# SPDX-License-Identifier: MIT

module Rondo
  class Bench
    # Of rounds of measurements.
    module Figures
      module_function

      # @param values [Array<Numeric, nil>]
      # @return [Numeric, nil]
      def median(values)
        sorted = values.compact.sort
        return if sorted.empty?

        middle = sorted.size / 2
        sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
      end

      # @param phase [Symbol] of {Rounds::PHASES}, or :memory
      # @return [Array<Numeric>] one figure of each round
      def of(rounds, phase, name)
        rounds.filter_map { |round| round.dig(phase, name) }
      end

      # @return [Float, nil] the median of the ratios within a round
      def ratio(rounds, base, phase, name)
        pairs = rounds.zip(base).map { |round, other| [round.dig(phase, name), other&.dig(phase, name)] }
        median(pairs.select { |mine, theirs| mine && theirs&.positive? }.map { |mine, theirs| mine.fdiv(theirs) })
      end

      # @return [String] with three digits, or more before the point
      def number(value)
        return "-" if value.nil?
        return "0" if value.zero?

        digits = [2 - Math.log10(value.abs).floor, 0].max
        text = format("%.#{[digits, 3].min}f", value)
        whole, rest = text.split(".")
        [whole.reverse.scan(/\d{1,3}-?/).join(",").reverse, rest].compact.join(".")
      end

      # @return [String] of microseconds, with a unit
      def time(microseconds)
        return "-" if microseconds.nil?
        return "#{number(microseconds)} µs" if microseconds < 1000
        return "#{number(microseconds / 1000.0)} ms" if microseconds < 1_000_000

        "#{number(microseconds / 1e6)} s"
      end

      # @return [String]
      def mebibytes(bytes)
        bytes ? "#{number(bytes / 1_048_576.0)} MiB" : "-"
      end

      # @param things [String] the singular, "thread"
      # @return [String]
      def count(number, things)
        "#{number} #{things}#{"s" unless number == 1}"
      end

      # @return [String]
      def percent(share)
        share ? "#{(share * 100).round} %" : "-"
      end
    end
  end
end
