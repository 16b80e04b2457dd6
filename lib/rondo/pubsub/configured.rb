# frozen_string_literal: true

# The engine that the settings ask for: a block of the configuration file, else Redis at an address.
# Made once: in the master of a cluster (lib/rondo/pubsub/cluster_engine.rb), else in the process that serves.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engines"

module Rondo
  module PubSub
    # From settings to an engine.
    # @api private
    module Configured
      PATIENCE = 10
      # Seconds that an engine has to close.
      FAREWELL = 2
      # The variable is often meant for other programs, so an error in it does not stop the server.
      COMMON = "REDIS_URL"

      module_function

      # Makes it the default, unless the application, which may have been loaded before, has chosen one.
      # @param settings [Settings::Resolved]
      # @param log [Logger]
      # @return [Engine, nil] see {.make}
      # @raise [Error] one line
      def open(settings, log)
        raise ConfigurationError, "redis_streams needs workers: -w 1 is enough" if settings[:redis_streams]
        return unless PubSub.default.equal?(PubSub::CLUSTER)

        make(settings, log)&.tap { |engine| PubSub.default = engine }
      end

      # @param settings [Settings::Resolved]
      # @param log [Logger]
      # @param patience [Numeric] seconds for a Redis without which nothing is to start
      # @return [Engine, nil]
      # @raise [Error] one line
      def make(settings, log, patience: PATIENCE)
        PubSub.log = log
        return own(settings[:pubsub_engine]) if settings[:pubsub_engine]
        return streams(settings, log, patience) if settings[:redis_streams]
        return unless settings[:redis_url]

        redis(settings, log, patience)
      end

      def own(block)
        engine = block.call or return
        missing = PubSub.missing(engine)
        raise ConfigurationError, "pubsub_engine: an engine must respond to #{missing.join(", ")}" if missing.any?

        engine
      end
      private_class_method :own

      def redis(settings, log, patience)
        connect(Redis.new(settings[:redis_url], log: log), settings, patience)
      rescue ConfigurationError => e
        raise if settings[:redis_required] || settings.source(:redis_url) != COMMON

        log.error "! #{COMMON} is not used: #{e.message}"
        nil
      end
      private_class_method :redis

      def streams(settings, log, patience)
        require "rondo/pubsub/redis_streams"
        engine = RedisStreams.new(settings[:redis_streams], prefix: settings[:redis_prefix], log: log)
        connect(engine, settings, patience)
      end
      private_class_method :streams

      def connect(engine, settings, patience)
        settings[:redis_required] ? engine.wait_until_connected(patience) : engine.start
        engine
      end
      private_class_method :connect

      # Published messages leave before the process ends, becomes another program or serves again.
      # @param engine [Engine, nil]
      # @param log [Logger]
      # @return [void]
      def close(engine, log)
        engine.close(FAREWELL) if engine.respond_to?(:close)
      rescue StandardError => e
        log.error "! #{engine.class}#close: #{e.message} (#{e.class})"
      ensure
        PubSub.detach(engine)
      end
    end
  end
end
