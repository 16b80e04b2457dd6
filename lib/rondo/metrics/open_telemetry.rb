# frozen_string_literal: true

# Sends to a collector of OpenTelemetry by the gem opentelemetry-exporter-otlp-metrics, which has the address and more
# from its variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME and others). The
# scoreboard has counted and sorted already, so the points are made here, and only the exporter is used: its meters
# would measure everything once more.
# SPDX-License-Identifier: MIT

require "rondo/metrics/reading"
require "securerandom"

module Rondo
  # @api private
  module Metrics
    # An exporter of OpenTelemetry.
    class OpenTelemetry
      # Seconds for one sending, with all that is tried again.
      PATIENCE = 10
      UNITS = { "bytes" => "By" }.freeze
      BOUNDS = Scoreboard::BOUNDS_US.map { |us| us / 1e6 }.freeze

      # What the library logs, of which the last line is kept.
      class LastLine
        # @return [String, nil]
        attr_reader :text

        # @param text [String]
        # @return [void]
        def write(text)
          @text = text
        end

        # @return [void]
        def clear
          @text = nil
        end

        # @return [void]
        def close; end
      end

      # @raise [ConfigurationError] the gem is missing, or one of its variables is wrong
      def initialize
        @last = LastLine.new
        # Where the application has it, it has chosen a logger.
        @owns_logger = !defined?(::OpenTelemetry::SDK)
        require "opentelemetry-exporter-otlp-metrics"
        ::OpenTelemetry.logger = logger if @owns_logger
        @exporter = ::OpenTelemetry::Exporter::OTLP::Metrics::MetricsExporter.new
        @resource = resource
        @scope = ::OpenTelemetry::SDK::InstrumentationScope.new("rondo", VERSION)
      rescue LoadError
        raise ConfigurationError, "metrics_to :opentelemetry needs the gem opentelemetry-exporter-otlp-metrics: add " \
                                  "it to the Gemfile"
      rescue ArgumentError, URI::Error => e
        raise ConfigurationError, "metrics_to :opentelemetry: #{Logger.quote(e.message)}"
      end

      # @param reading [Reading]
      # @return [void]
      # @raise [Failed] nobody took it
      def send_reading(reading)
        @last.clear
        return if @exporter.export(metrics(reading), timeout: PATIENCE) == ::OpenTelemetry::SDK::Metrics::Export::SUCCESS

        raise Failed, @last.text || "the exporter of OpenTelemetry failed; its logger says why"
      end

      # @return [void]
      def close
        @exporter.shutdown
      end

      private

      def logger
        require "logger"
        ::Logger.new(@last, formatter: ->(_level, _time, _program, message) { message.to_s })
      end

      # Two servers of one service are two series.
      def resource
        own = ::OpenTelemetry::SDK::Resources::Resource
        own.create("service.instance.id" => SecureRandom.uuid).merge(own.default)
      end

      def metrics(reading)
        now = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
        points = reading.workers.map { |worker| [worker, place(worker, reading, now)] }
        [*numbers(points), *ages(points), *times(points)]
      end

      # What all points of a worker have.
      def place(worker, reading, now)
        attributes = { "worker" => worker.number }
        attributes["leaving"] = true if worker.leaving
        { attributes: attributes, start_time_unix_nano: now - ((reading.time_ms - worker.started_ms) * 1_000_000),
          time_unix_nano: now, exemplars: [] }
      end

      def numbers(points)
        Reading::GAUGES.map { |name| number(name, :gauge, points) { |worker| worker.gauges[name] } } +
          Reading::COUNTERS.map { |name| number(name, :counter, points) { |worker| worker.counters[name] } }
      end

      def number(name, kind, points)
        row = Scoreboard::NUMBERS.fetch(name)
        measured = points.map { |worker, place| point(place, yield(worker)) }
        metric(name, row[:doc], UNITS.fetch(row[:unit], "1"), kind, measured)
      end

      def ages(points)
        Reading::AGES.keys.map do |name|
          known = points.select { |worker, _| worker.ages.key?(name) }
          metric(name, Reading::DOCS[name], "s", :gauge, known.map { |worker, place| point(place, worker.ages[name]) })
        end
      end

      def times(points)
        Reading::TIMES.keys.map do |name|
          measured = points.map do |worker, place|
            counts, sum_us = worker.times[name]
            made(:HistogramDataPoint, **place, count: counts.sum, sum: sum_us / 1e6, bucket_counts: counts,
                                               explicit_bounds: BOUNDS)
          end
          metric(name, Reading::DOCS[name], "s", :histogram, measured)
        end
      end

      def point(place, value)
        made(:NumberDataPoint, **place, value: value)
      end

      # Members differ between versions.
      def made(type, **values)
        struct = ::OpenTelemetry::SDK::Metrics::Aggregation.const_get(type)
        struct.new(*struct.members.map { |member| values[member] })
      end

      def metric(name, doc, unit, kind, points)
        first = points.first
        ::OpenTelemetry::SDK::Metrics::State::MetricData.new(
          "rondo.#{name}", doc, unit, kind, @resource, @scope, points, :cumulative,
          first&.start_time_unix_nano, first&.time_unix_nano, kind == :counter
        )
      end
    end
  end
end
