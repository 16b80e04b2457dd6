# frozen_string_literal: true

# Sends to a StatsD by the gem statsd-instrument, which has address, prefix and dialect from its variables
# (STATSD_ADDR, STATSD_SOCKET_PATH, STATSD_PREFIX, STATSD_IMPLEMENTATION, STATSD_DEFAULT_TAGS). StatsD has no labels,
# and no histograms with buckets: each number is that of all workers together, times are quantiles of the last interval.
# SPDX-License-Identifier: MIT

require "rondo/command/top/figures"
require "rondo/metrics/reading"

module Rondo
  # @api private
  module Metrics
    # A client of StatsD.
    class Statsd
      # Of these the sum of all workers has no meaning.
      LARGEST = %i[max_queue_seen].freeze
      QUANTILES = { "p50" => 0.5, "p95" => 0.95, "p99" => 0.99 }.freeze

      # Gathers datagrams into packets. An error is an error, and not a line of the gem's logger.
      class Packets
        # Bytes that fit into a frame of Ethernet.
        MOST = 1432

        # @param connection [#send_datagram, #close] of the gem
        def initialize(connection)
          @connection = connection
          @waiting = +""
        end

        # @return [Boolean] whether a number is sent at all
        def sample?(_rate)
          true
        end

        # @param datagram [String]
        # @return [self]
        def <<(datagram)
          send_all if @waiting.bytesize + datagram.bytesize >= MOST
          @waiting << "\n" unless @waiting.empty?
          @waiting << datagram
          self
        end

        # @return [void]
        # @raise [SystemCallError, SocketError, IOError]
        def send_all
          packet = @waiting
          @waiting = +""
          @connection.send_datagram(packet) unless packet.empty?
        rescue SystemCallError, SocketError, IOError
          close
          raise
        end

        # @return [void]
        def flush(*) end

        # @return [void]
        def clear
          @waiting = +""
        end

        # @return [void]
        def close
          @connection.close
        end
      end

      # @raise [ConfigurationError] the gem is missing, or one of its variables is wrong
      def initialize
        require "statsd-instrument"
        environment = StatsD::Instrument::Environment.new(ENV)
        @packets = Packets.new(connection(environment))
        @client = StatsD::Instrument::Client.new(
          prefix: environment.statsd_prefix, default_tags: environment.statsd_default_tags,
          implementation: environment.statsd_implementation, sink: @packets
        )
        @client.gauge("rondo.workers", 0) # what cannot be written at all is known now
        @packets.clear
        @before = {}
      rescue LoadError
        raise ConfigurationError, "metrics_to :statsd needs the gem statsd-instrument: add it to the Gemfile"
      rescue NotImplementedError, ArgumentError => e
        raise ConfigurationError, "metrics_to :statsd: #{Logger.quote(e.message)}"
      end

      # @param reading [Reading]
      # @return [void]
      # @raise [SystemCallError, SocketError, IOError]
      def send_reading(reading)
        gauges(reading).each { |name, value| @client.gauge("rondo.#{name}", value) }
        deltas = reading.workers.map { |worker| delta(worker) }
        @before = reading.workers.to_h { |worker| [worker.pid, worker] }
        Reading::COUNTERS.each { |name| @client.increment("rondo.#{name}", deltas.sum { |delta| delta[name] }) }
        quantiles(deltas).each { |name, value| @client.gauge("rondo.#{name}", value) }
        @packets.send_all
      end

      # @return [void]
      def close
        @packets.close
      end

      private

      def connection(environment)
        if environment.statsd_uds_send?
          return StatsD::Instrument::UdsConnection.new(environment.statsd_socket_path, max_packet_size: Packets::MOST)
        end

        host, _, port = environment.statsd_addr.rpartition(":")
        unless !host.empty? && port.match?(/\A\d{1,5}\z/) && port.to_i.between?(1, 65_535)
          raise ArgumentError, "STATSD_ADDR must be HOST:PORT, not #{environment.statsd_addr.inspect}"
        end

        StatsD::Instrument::UdpConnection.new(host.delete("[]"), port.to_i)
      end

      def gauges(reading)
        workers = reading.workers
        sums = Reading::GAUGES.to_h do |name|
          values = workers.map { |worker| worker.gauges[name] }
          [name, LARGEST.include?(name) ? values.max || 0 : values.sum]
        end
        ages = Reading::AGES.keys.to_h { |name| [name, workers.filter_map { |worker| worker.ages[name] }.max || 0] }
        { workers: workers.count { |worker| worker.state == :ready }, **sums, **ages }
      end

      # What was counted since the last time; a new process counts from zero.
      def delta(worker)
        before = @before[worker.pid]
        before = nil unless before&.started_ms == worker.started_ms
        counters = worker.counters.to_h { |name, now| [name, [now - (before ? before.counters[name] : 0), 0].max] }
        times = worker.times.to_h do |name, (counts, _)|
          [name, before ? counts.zip(before.times[name].first).map { |now, old| [now - old, 0].max } : counts]
        end
        counters.merge(times)
      end

      # Seconds. An interval without requests has no quantiles.
      def quantiles(deltas)
        Reading::TIMES.keys.flat_map do |name|
          counts = deltas.map { |delta| delta[name] }.transpose.map(&:sum)
          next [] if counts.sum.zero?

          QUANTILES.map do |label, part|
            us = Top::Figures.percentile(counts, Scoreboard::BOUNDS_US, part)
            ["#{name}.#{label}", format("%<seconds>.6f", seconds: us / 1e6)] # not every server reads 1.6e-05
          end
        end
      end
    end
  end
end
