# frozen_string_literal: true

# A mold and its workers must not share connections to databases, because both sides would use them. Threads do not
# survive a fork. The connections of ActiveRecord and Sequel are closed; threads are named in the log, so that the
# application can start them in before_worker_boot. And what the application forks itself is no second server.
# SPDX-License-Identifier: MIT

module Rondo
  # Prepares a process that is about to be forked.
  # @api private
  module ForkSafety
    # Threads of Ruby itself, which starts them again when it needs them.
    HARMLESS = /\A(?:Timeout stdlib thread|Timeout::Request)/

    module_function

    # Closes connections; each process opens its own when it needs one.
    # @param log [#error]
    # @return [void]
    def disconnect(log)
      disconnect_active_record
      disconnect_sequel
    rescue StandardError => e
      log.error "! could not close connections of the mold before a fork: #{e.message} (#{e.class})"
    end

    # Runs a block of the application. `fork` without a block returns twice, and the copy must not go on as if it were
    # the server: it ends with the block.
    # @param what [String] the block, in words
    # @return [Object] what the block returns
    # @raise what the block raises, in this process
    def here_only(what)
      process = Process.pid
      yield.tap { end_copy(what) if Process.pid != process }
    rescue SystemExit => e
      Process.pid == process ? raise : exit!(e.status)
    rescue StandardError, ScriptError
      Process.pid == process ? raise : end_copy(what)
    end

    # @return [Array<Thread>] threads that a fork ends, without those that are known to be harmless
    def threads
      Thread.list.reject do |thread|
        thread == Thread.current || thread.name&.match?(HARMLESS) || thread.thread_variable_get(:fork_safe)
      end
    end

    # @return [String] threads with the places they are at
    def describe(threads)
      threads.map { |thread| [thread.inspect, *thread.backtrace&.first(1)].join(" at ") }.join("; ")
    end

    # Collects garbage, so that the objects that all workers will share are old and in order.
    # @return [void]
    def compact_memory
      Process.respond_to?(:warmup) ? Process.warmup : 3.times { GC.start }
    end

    def end_copy(what)
      $stderr.write("! #{what}: it has forked without a block; the copy of the server ends\n")
      $stderr.flush
      exit!(1)
    end
    private_class_method :end_copy

    # In the child ActiveRecord forgets its pools by itself (ActiveSupport::ForkTracker).
    def disconnect_active_record
      return unless defined?(::ActiveRecord::Base) && ::ActiveRecord::Base.respond_to?(:connection_handler)

      handler = ::ActiveRecord::Base.connection_handler
      arity = handler.method(:clear_all_connections!).arity
      arity.zero? ? handler.clear_all_connections! : handler.clear_all_connections!(:all)
    end
    private_class_method :disconnect_active_record

    def disconnect_sequel
      return unless defined?(::Sequel::DATABASES)

      ::Sequel::DATABASES.each(&:disconnect)
    end
    private_class_method :disconnect_sequel
  end
end
