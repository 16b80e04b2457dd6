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
        PubSub.log = log
        needy = keeping(settings)
        raise ConfigurationError, "#{needy} needs workers: -w 1 is enough" if needy
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
        check_address(settings)
        return own(settings[:pubsub_engine]) if settings[:pubsub_engine]
        only_one(settings)
        return nats(settings, log, patience) if settings[:nats]
        return unless settings[:redis_streams] || settings[:redis_url]

        redis(settings, log, patience)
      end

      # @param settings [Settings::Resolved]
      # @return [Boolean] whether the engine will keep messages for all servers; false for one of a block, which may
      def keeps?(settings)
        !settings[:pubsub_engine] && !keeping(settings).nil?
      end

      # Not connected yet.
      # @param settings [Settings::Resolved] with an address
      # @param log [Logger]
      # @return [Redis]
      # @raise [ConfigurationError]
      def redis_engine(settings, log)
        return plain_redis(settings, log) unless settings[:redis_streams]

        require "rondo/pubsub/redis_streams"
        RedisStreams.new(settings[:redis_streams], prefix: settings[:redis_prefix], log: log)
      end

      def plain_redis(settings, log)
        if settings[:redis_prefix]
          raise ConfigurationError, "redis_prefix needs redis_streams: with redis_url the names of channels " \
                                    "have no prefix"
        end

        Redis.new(settings[:redis_url], log: log)
      end
      private_class_method :plain_redis

      # Not connected yet.
      # @param settings [Settings::Resolved] with an address
      # @param log [Logger]
      # @return [Nats]
      # @raise [ConfigurationError]
      def nats_engine(settings, log)
        url, options = settings[:nats]
        require "rondo/pubsub/nats"
        Nats.new(url, log: log, **options.to_h.except(:required))
      end

      def nats(settings, log, patience)
        engine = nats_engine(settings, log)
        _url, options = settings[:nats]
        options.to_h[:required] ? engine.wait_until_connected(patience) : engine.start
        engine
      end
      private_class_method :nats

      # @return [String, nil] the setting of an engine that keeps messages for all servers
      def keeping(settings)
        return "redis_streams" if settings[:redis_streams]

        _url, options = settings[:nats]
        "nats with jetstream" if options.to_h[:jetstream]
      end
      private_class_method :keeping

      # @raise [ConfigurationError]
      def check_address(settings)
        return if !settings[:redis_required] || settings[:redis_streams] || settings[:redis_url]

        raise ConfigurationError, "redis_required needs redis_url or redis_streams: there is no address of a Redis"
      end
      private_class_method :check_address

      # @raise [ConfigurationError]
      def only_one(settings)
        set = %i[nats redis_streams redis_url].select { |name| settings[name] }
        set.delete(:redis_url) if settings.source(:redis_url) == COMMON
        return if set.size < 2

        raise ConfigurationError, "#{set.join(" and ")} are both set, but one engine carries the messages: " \
                                  "keep one of them"
      end
      private_class_method :only_one

      def own(block)
        engine = block.call or return
        missing = PubSub.missing(engine)
        raise ConfigurationError, "pubsub_engine: an engine must respond to #{missing.join(", ")}" if missing.any?

        engine
      end
      private_class_method :own

      def redis(settings, log, patience)
        engine = redis_engine(settings, log)
        settings[:redis_required] ? engine.wait_until_connected(patience) : engine.start
        engine
      rescue ConfigurationError => e
        raise if settings[:redis_required] || settings[:redis_streams] || settings.source(:redis_url) != COMMON

        log.error "! #{COMMON} is not used: #{e.message}"
        nil
      end
      private_class_method :redis

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
