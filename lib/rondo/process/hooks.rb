# frozen_string_literal: true

# Calls the hooks of the configuration file. A hook that raises is one line that names it and its
# place; the caller decides whether that ends anything.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/boot/fork_safety"
require "rondo/puma/hook_arguments"

module Rondo
  # The hooks of one process.
  # @api private
  class Hooks
    # Seconds that a hook has to end after its time is over.
    LAST_GRACE = 1

    # @param configuration [Configuration]
    # @param log [Logger]
    def initialize(configuration, log)
      @configuration = configuration
      @hooks = configuration.hooks
      @log = log
    end

    # @return [Hash{Symbol => Proc}] what {Server#initialize} calls in each application thread, and after requests
    def of_server
      threads = ThreadControl.new(@configuration.options)
      { thread_start: [:before_thread_start, threads], thread_exit: [:before_thread_exit],
        out_of_band: [:out_of_band] }.filter_map do |option, given|
        [option, -> { try(*given) }] if any?(given.first)
      end.to_h
    end

    # @param name [Symbol]
    # @return [Boolean] whether there is one
    def any?(name)
      @hooks.key?(name) && @hooks[name].any?
    end

    # @param name [Symbol]
    # @param arguments [Array<Object>] what the blocks get
    # @return [void]
    # @raise [ConfigurationError] one line
    def call(name, *arguments)
      @hooks[name].each { |block| call_block(name, block, arguments) }
    end

    # For a hook whose failure stops nothing, not the next block either: the error is logged.
    # @return [void]
    def try(name, *arguments)
      @hooks[name].each do |block|
        call_block(name, block, arguments)
      rescue ConfigurationError => e
        @log.error "! #{e.message}"
      end
    end

    # The same on a thread of its own, for a caller that cannot wait for ever.
    # @param seconds [Numeric] what the caller waits at most
    # @param names [Symbol, Array<Symbol>] one after the other
    # @return [void]
    def try_within(seconds, names, *arguments)
      wanted = [*names].select { |name| any?(name) }
      Thread.new { wanted.each { |name| try_on_thread(name, arguments) } }.join(seconds) unless wanted.empty?
    end

    # The same, and a hook whose time is over ends with a line, wherever it is.
    # @param seconds [Numeric]
    # @param name [Symbol]
    # @return [Boolean] whether it has ended by itself
    def try_for(seconds, name, *arguments)
      return true unless any?(name)

      thread = Thread.new { try_on_thread(name, arguments) }
      return true if thread.join(seconds)

      @log.error "! #{name} did not return within #{format("%g", seconds)} s, and was ended"
      thread.kill
      thread.join(LAST_GRACE)
      false
    end

    private

    def call_block(name, block, arguments)
      ForkSafety.here_only(name) { block.call(*arguments) }
    rescue StandardError, ScriptError => e
      at = e.backtrace&.first.to_s[/\A.*?:\d+/]
      raise ConfigurationError, "#{name} raised at #{at}: #{e.message.lines.first.to_s.chomp} (#{e.class})"
    end

    # What ends a thread comes out of it where it is awaited, and would end the process there.
    def try_on_thread(name, arguments)
      Thread.current.name = name.to_s
      Thread.current.report_on_exception = false
      try(name, *arguments)
    rescue SystemExit
      @log.error "! #{name} called exit, which ends nothing there"
    rescue Exception => e # rubocop:disable Lint/RescueException -- also a stack that is too deep
      @log.error "! #{name} raised #{e.message.lines.first.to_s.chomp} (#{e.class})"
    end
  end
end
