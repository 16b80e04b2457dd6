# frozen_string_literal: true

# Reads certificates again while the server runs: when it is asked to, and when their files have changed. What cannot
# be used is one line of the log, and the old certificates stay. The launcher and the master have one of these, with a
# thread of its own, because files and commands for passwords may take their time.
# SPDX-License-Identifier: MIT

require "rondo"

module Rondo
  module Certificates
    # Watches the files of all addresses for TLS.
    class Reloading
      # Seconds between two looks at the files.
      PERIOD = 10

      # What an address says, and how its files were when they were read.
      Source = Struct.new(:spec, :address, :seen) do
        # @return [Array] of each file what changes with it; the error where there is none
        def look
          TLS.files(spec).map do |path|
            stat = File.stat(path)
            [stat.dev, stat.ino, stat.size, stat.mtime, stat.ctime]
          rescue SystemCallError => e
            e.errno
          end
        end

        # @return [Boolean]
        def changed?
          look != seen
        end
      end

      # To be made before the files are read for the first time, so that no change is missed.
      # @param uris [Array<String>] to bind
      # @param log [Logger]
      # @param period [Numeric] seconds between two looks
      # @yieldparam materials [Array<TLS::Material>] to show from now on; on the thread of this
      def initialize(uris, log, period: PERIOD, &taker)
        @log = log
        @period = period
        @taker = taker
        @lock = Mutex.new
        @wake = ConditionVariable.new
        @sources = uris.filter_map { |uri| source(uri) }.uniq { |source| TLS.name(source.spec) }
      end

      # @return [Boolean] whether there is anything to read
      def any?
        @sources.any?
      end

      # @return [void]
      def start
        return unless any?

        @thread = Thread.new { work }
        @thread.name = "rondo certificates"
      end

      # Reads all of them soon, whether they have changed or not. Any thread, but no handler of a signal.
      # @return [Boolean] whether there is anything to read
      def request
        @lock.synchronize do
          @requested = true
          @wake.signal
        end
        any?
      end

      # Reads now, on this thread.
      # @param all [Boolean] also where no file has changed
      # @return [void]
      def pass(all: false)
        due = @sources.select { |source| all || source.changed? }
        found = due.filter_map { |source| read(source) }
        return if found.empty?

        @taker.call(found.map(&:first))
        @log.say "- Certificates reloaded: #{found.flat_map(&:last).uniq.map { |one| describe(*one) }.join(", ")}"
      end

      private

      def work
        loop do
          all = @lock.synchronize do
            @wake.wait(@lock, @period) unless @requested
            @requested.tap { @requested = false }
          end
          pass(all: all)
        rescue StandardError => e
          @log.error "certificates: #{e.full_message(highlight: false)}"
        end
      end

      def source(uri)
        spec = Address.parse(uri)[:tls] or return
        Source.new(spec, uri.split("?", 2).first).tap { |source| source.seen = source.look }
      end

      # What is seen is from before the reading: if somebody writes meanwhile, the next look finds a change.
      def read(source)
        source.seen = source.look
        material = TLS.read(source.spec, source.address) { |line| @log.error line }
        [material, TLS.check(material)] unless material[:certificates].empty?
      rescue TLS::Refused, AddressError => e
        @log.error TLS.complaint(source.address, e)
        nil
      end

      def describe(name, ends)
        "#{name} until #{Time.at(ends).utc.strftime("%Y-%m-%d")}"
      end
    end
  end
end
