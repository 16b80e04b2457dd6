# frozen_string_literal: true

# Whether ActiveRecord and Sequel have a connection for each fiber. A fiber that gets none waits for one, and gives up.
# SPDX-License-Identifier: MIT

module Rondo
  # Looks at pools of connections.
  # @api private
  module Databases
    module_function

    # @param fibers [Integer] calls at once
    # @return [Array<String>] lines: none if all pools are as large, or there is no database
    def lines(fibers)
      [line(fibers, sizes, "checkout_timeout (#{patience} s)", "pool in config/database.yml"),
       line(fibers, sizes_of_sequel, "pool_timeout", "max_connections")].compact
    end

    def line(fibers, sizes, timeout, setting)
      small = sizes.select { |_, size| size < fibers }
      return if small.empty?

      names = small.map { |name, size| "#{name} (#{size})" }.join(", ")
      "#{fibers} fibers, and fewer connections to databases: #{names}. A fiber that waits for a connection longer " \
        "than #{timeout} gets an error: set #{setting}, or fewer fibers"
    end
    private_class_method :line

    # Gives back the connections that this thread has taken while the application was loaded.
    # @return [void]
    def release
      pools.each(&:release_connection)
    end

    # @return [Hash{String => Integer}] connections by the names of all configurations: of each role and shard
    def sizes
      all.uniq(&:name).to_h { |config| [config.name, size_of(config)] }.compact
    end

    def all
      return [] unless defined?(::ActiveRecord::Base)

      [*configured, *pools.map(&:db_config)]
    end
    private_class_method :all

    # Replicas, too. Rails 7.0 has another word for them.
    def configured
      found = configurations or return []
      words = found.method(:configs_for).parameters.map(&:last)
      hidden = (words & %i[include_hidden include_replicas]).first
      found.configs_for(env_name: ::ActiveRecord::ConnectionHandling::DEFAULT_ENV.call.to_s, hidden => true)
    end
    private_class_method :configured

    # Rails loads the class late. What it would find is not worth a failure here: the first query reports it.
    def configurations
      return ::ActiveRecord::Base.configurations if loaded?
      return unless defined?(::Rails.application) && ::Rails.application

      require "active_record/database_configurations"
      ::ActiveRecord::DatabaseConfigurations.new(::Rails.application.config.database_configuration)
    rescue StandardError
      nil
    end
    private_class_method :configurations

    def loaded?
      defined?(::ActiveRecord::Base) && !::ActiveRecord.autoload?(:Base)
    end
    private_class_method :loaded?

    def pools
      return [] unless loaded?

      handler = ::ActiveRecord::Base.connection_handler
      handler.respond_to?(:each_connection_pool) ? handler.each_connection_pool.to_a : handler.all_connection_pools
    end
    private_class_method :pools

    # @return [Integer, nil] nil: as many as are wanted
    def size_of(config)
      config.respond_to?(:max_connections) ? config.max_connections : config.pool
    end
    private_class_method :size_of

    def patience
      format("%g", all.map(&:checkout_timeout).min || 0)
    end
    private_class_method :patience

    # @return [Hash{String => Integer}] without what may be secret in their URLs
    def sizes_of_sequel
      return {} unless defined?(::Sequel::DATABASES)

      ::Sequel::DATABASES.to_h { |base| [base.opts.values_at(:adapter, :database).compact.join(" "), base.pool.max_size] }
    end
    private_class_method :sizes_of_sequel
  end
end
