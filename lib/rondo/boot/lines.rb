# frozen_string_literal: true

# The lines at boot: each setting and its source. Programs read these lines, so they look as Puma's.
# SPDX-License-Identifier: MIT

require "rondo"

module Rondo
  # Writes the block to the log.
  # @api private
  class BootLines
    # They change what fibers do.
    OF_FIBERS = %i[fiber_pool slow_fiber_ms].freeze

    # @param settings [Settings::Resolved]
    # @param configuration [Configuration]
    # @param log [Logger]
    def initialize(settings, configuration, log)
      @settings = settings
      @configuration = configuration
      @log = log
    end

    # @param workers [WorkerCount]
    # @return [void]
    def single(workers)
      @log.say "Rondo starting in single mode..."
      versions
      @log.say "*      Workers: #{workers}"
      surroundings
      @log.say "*          PID: #{Process.pid}"
      notes
    end

    # @param workers [WorkerCount]
    # @return [void]
    def cluster(workers)
      @log.say "Rondo starting in cluster mode..."
      versions
      surroundings
      @log.say "*   Master PID: #{Process.pid}"
      @log.say "*      Workers: #{workers}"
      @log.say "*     Restarts: (✔) hot (✔) phased (✔) refork"
      notes
    end

    # @return [void]
    def fibers
      count = FiberCount.of(@settings)
      return @log.say "*       Fibers: #{count} (#{@settings.source(:fibers)})" if count.any?

      OF_FIBERS.each do |name|
        @log.say "! #{name} (#{@settings.source(name)}): no effect without fibers" if @settings[name].positive?
      end
    end

    private

    def versions
      @log.say "* Rondo version: #{VERSION}"
      @log.say "*  Ruby version: #{RUBY_DESCRIPTION}"
      @log.say "*  Min threads: #{@settings[:min_threads]} (#{@settings.source(:min_threads)})"
      @log.say "*  Max threads: #{@settings[:max_threads]} (#{@settings.source(:max_threads)})"
      fibers
    end

    def surroundings
      @log.say "*  Environment: #{@settings[:environment]} (#{@settings.source(:environment)})"
      @settings.core.except(:min_threads, :max_threads, :fibers).each do |name, value|
        @log.say "*      Setting: #{name} #{value} (#{@settings.source(name)})"
      end
    end

    def notes
      @log.say "*       Config: #{@configuration.path || "none found"}"
      @log.say "* Serving files of #{@settings.public_folder}" if @settings.public_folder
      @configuration.notes.each { |line| @log.say "! #{line}" }
      say_who_is_believed
    end

    def say_who_is_believed
      field = @settings[:client_field]
      say_everybody(:client_field, field, :trusted_proxies) if field && [*@settings[:trusted_proxies]].empty?
      return unless @settings[:proxy_protocol_from] == Settings::EVERYBODY

      say_everybody(:proxy_protocol_from, "a PROXY header", :proxy_protocol_from)
    end

    def say_everybody(setting, how, limit)
      @log.say "! set_remote_address (#{@settings.source(setting)}): every peer may name the client by #{how}; " \
               "#{limit} says which may"
    end
  end
end
