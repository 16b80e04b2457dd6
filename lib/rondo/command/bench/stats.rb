# frozen_string_literal: true

# What Rondo says of itself between two looks at /stats: how long requests waited for the application,
# and how long they were in it.
# SPDX-License-Identifier: MIT

require "json"
require "rondo/command/control_client"

module Rondo
  class Bench
    # Histograms of all workers at one time.
    class Stats
      HISTOGRAMS = %w[queue_time_us duration_us].freeze

      # @param url [String] of the control server
      # @return [Stats, nil] nil when there is no answer
      def self.read(url)
        response = ControlClient.new(url).get("/stats")
        new(JSON.parse(response.body)) if response.ok?
      rescue ControlClient::Unreachable, JSON::ParserError
        nil
      end

      # @return [Array<Integer>] upper ends of buckets, microseconds
      attr_reader :bounds
      # @return [Hash{String => Array<Integer>}]
      attr_reader :buckets
      # @return [Hash{String => Integer}]
      attr_reader :sums

      # @param page [Hash] as /stats has it
      def initialize(page)
        rows = page["worker_status"]&.map { |worker| worker["rondo"] || worker.dig("last_status", "rondo") } ||
               [page["rondo"]]
        @bounds = page["bounds_us"]
        @buckets = HISTOGRAMS.to_h { |name| [name, add(rows.compact.map { |row| row.dig(name, "buckets") })] }
        @sums = HISTOGRAMS.to_h { |name| [name, rows.compact.sum { |row| row.dig(name, "sum").to_i }] }
      end

      # @param before [Stats]
      # @return [Hash{Symbol => Float}] microseconds: medians are upper ends of buckets, the means are exact
      def since(before)
        HISTOGRAMS.each_with_object({}) do |name, found|
          counts = buckets[name].zip(before.buckets[name]).map { |now, was| now - was.to_i }
          total = counts.sum
          next unless total.positive?

          short = name.delete_suffix("_us").delete_suffix("_time").sub("duration", "inside")
          found[:"#{short}_mean_us"] = (sums[name] - before.sums[name]).fdiv(total)
          found[:"#{short}_p50_us"] = percentile(counts, total, 0.5)
          found[:"#{short}_p99_us"] = percentile(counts, total, 0.99)
        end
      end

      private

      def add(lists)
        lists.compact.transpose.map(&:sum)
      end

      def percentile(counts, total, share)
        seen = 0
        index = counts.index { |count| (seen += count) >= total * share }
        (bounds[index] || bounds.last).to_f
      end
    end
  end
end
