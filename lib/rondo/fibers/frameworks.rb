# frozen_string_literal: true

# What Rails and its parts keep for each thread belongs to one request, and with fibers a thread has many of them. Here
# it is moved to the fiber, or the server does not start. Called when the application is loaded and before it serves.
# SPDX-License-Identifier: MIT

module Rondo
  # Makes the frameworks that are loaded fit for fibers.
  # @api private
  module Frameworks
    # The first version whose parts can be told that a fiber is what a request runs in.
    OLDEST = 7

    # Stands for Thread in ActiveSupport's ShareLock, which knows by Thread.current who has it: without this a fiber
    # could take the code of another one away that waits on the same thread. Rails 8.2 asks for the fiber itself.
    module Owner
      # @return [Fiber]
      def self.current
        Fiber.current
      end
    end

    # The locale of a fiber. On Ruby 3.1, which has no storage of fibers, I18n 1.15 keeps it for the thread.
    module Locale
      # @return [I18n::Config]
      def config
        Thread.current[:i18n_config] ||= ::I18n::Config.new
      end

      # @param value [I18n::Config]
      def config=(value)
        Thread.current[:i18n_config] = value
      end

      # @return [I18n::Config]
      def writable_config
        config.frozen? ? self.config = config.dup : config
      end
    end

    class << self
      # Rails forgets what the application has asked for, once it has obeyed.
      # @return [Boolean] whether there is an ActiveSupport that will say it, from now on
      def watch
        return true if @watches
        return false unless defined?(::ActiveSupport) && ::ActiveSupport.respond_to?(:on_load)

        ::ActiveSupport.on_load(:after_initialize, yield: true) { |app| Frameworks.note(app.config) }
        @watches = true
      end

      # @param config [Object] of a Rails application
      # @return [void]
      def note(config)
        return unless config.respond_to?(:active_support)

        @asked = config.active_support.isolation_level || @asked
      end

      # Watches from the moment on in which ActiveSupport is there; for {WhileLoading.seek}.
      # @return [#call]
      def seeker
        ->(_) { watch }
      end

      # What is done once is not done again.
      # @param fibers [Integer] calls at once; 0: nothing is changed
      # @param log [#info]
      # @return [void]
      # @raise [ConfigurationError] one line: the application cannot run in fibers
      def prepare(fibers, log)
        return if fibers.zero?

        @prepared ||= {}
        once(:rails, defined?(::ActiveSupport::VERSION)) { prepare_rails(log) }
        once(:sequel, defined?(::Sequel::DATABASES)) { prepare_sequel }
        once(:databases, @prepared.any?) { Databases.lines(fibers).each { |line| log.info("! #{line}") } }
      end

      private

      def once(what, is_there)
        return if !is_there || @prepared[what]

        yield
        @prepared[what] = true
      end

      def prepare_rails(log)
        refuse_old
        refuse_threads
        isolate if defined?(::ActiveSupport::IsolatedExecutionState)
        keep_locale
        tell_of_loading(log)
      end

      # Its pools know by this who has a connection.
      def prepare_sequel
        ::Sequel.extension(:fiber_concurrency)
      rescue LoadError, ::Sequel::Error
        raise ConfigurationError, "fibers need a newer sequel: #{::Sequel::VERSION} gives fibers of one thread the " \
                                  "same connection"
      end

      def refuse_old
        { "Rails" => "rails", "ActiveRecord" => "activerecord" }.each do |name, gem|
          next unless Object.const_defined?("#{name}::VERSION")

          version = Object.const_get("#{name}::VERSION")
          next if version::MAJOR >= OLDEST

          raise ConfigurationError, "fibers need #{gem} #{OLDEST}.0 or newer: #{version::STRING} keeps for each " \
                                    "thread what belongs to one request"
        end
      end

      def refuse_threads
        return unless @asked.to_s == "thread"

        raise ConfigurationError, "fibers: the application sets config.active_support.isolation_level to :thread, " \
                                  "and then requests in fibers of one thread share their state: remove that line, or " \
                                  "the setting fibers"
      end

      # What was kept for this thread so far is given back before.
      def isolate
        Databases.release
        ::ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
        require "active_support/concurrency/share_lock"
        lock = ::ActiveSupport::Concurrency::ShareLock
        lock.const_set(:Thread, Owner) unless lock.const_defined?(:Thread, false)
      end

      def keep_locale
        return if Fiber.respond_to?(:[]) || !defined?(::I18n::Config)

        ::I18n.singleton_class.prepend(Locale)
      end

      # Before Ruby 3.2, a fiber does not wait for another one that loads a class, and finds half of it.
      def tell_of_loading(log)
        return if RUBY_VERSION >= "3.2" || !defined?(::Rails.application) || ::Rails.application.nil?
        return if ::Rails.application.config.eager_load

        log.info "! Ruby #{RUBY_VERSION} cannot load a class for two fibers at once, if loading it waits: set " \
                 "config.eager_load = true"
      end
    end
  end
end
