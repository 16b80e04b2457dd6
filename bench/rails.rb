# frozen_string_literal: true

# What parts of Rails cost on Rondo, beside Rails' own way and beside Puma: `ruby bench/rails.rb [options] [cable]...`,
# all parts if none is named. Needs the gems of the tests; Puma is that of peers.rb.
#
# - cable: connections, broadcasts and heartbeats of Action Cable, with 300 and 5,000 clients.
# - live: 1,000 silent streams of ActionController::Live, and plain requests beside them.
# SPDX-License-Identifier: MIT

require "optparse"
require_relative "rails_cable"
require_relative "rails_live"

module Bench
  # The command line.
  class RailsRun
    PARTS = { "cable" => RailsCable, "live" => RailsLive }.freeze

    def initialize(arguments)
      @options = { clients: [300, 5000], servers: RailsServer::NAMES.keys, deliveries: RailsCable::DELIVERIES,
                   seconds: RailsCable::IDLE_SECONDS, streams: RailsLive::STREAMS }
      @parts = parser.parse(arguments)
      @parts = PARTS.keys if @parts.empty?
    end

    # @return [void]
    def call
      unknown = @parts - PARTS.keys
      abort "bench: no such part: #{unknown.join(", ")}; there are #{PARTS.keys.join(", ")}" if unknown.any?

      text = "# Rails\n\n#{@parts.map { |name| PARTS.fetch(name).new(@options).call }.join("\n")}"
      @options[:out] ? File.write(@options[:out], text) : puts(text)
    end

    private

    def set(options, name, *words)
      options.on(*words) { |value| @options[name] = block_given? ? yield(value) : value }
    end

    def parser
      OptionParser.new do |options|
        options.banner = "usage: ruby bench/rails.rb [options] [#{PARTS.keys.join("|")}]..."
        set(options, :clients, "--clients A,B", Array, "numbers of clients (300,5000)") { |all| all.map(&:to_i) }
        set(options, :servers, "--servers A,B", Array, "only these: #{RailsServer::NAMES.keys.join(" ")}")
        set(options, :deliveries, "--deliveries N", Integer, "messages that arrive (#{RailsCable::DELIVERIES})")
        set(options, :seconds, "--seconds S", Float, "of idle clients, and of plain requests (#{RailsCable::IDLE_SECONDS})")
        set(options, :streams, "--streams N", Integer, "of Live (#{RailsLive::STREAMS})")
        set(options, :out, "--out FILE", String, "write the Markdown there")
      end
    end
  end
end

Bench::RailsRun.new(ARGV).call if $PROGRAM_NAME == __FILE__
