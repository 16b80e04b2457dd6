# frozen_string_literal: true

# Calls the hooks of the configuration file. A hook that raises is one line that names it and its
# place; the caller decides whether that ends anything.
# SPDX-License-Identifier: MIT

require "rondo"

module Rondo
  # The hooks of one process.
  class Hooks
    # @param configuration [Configuration]
    # @param log [Logger]
    def initialize(configuration, log)
      @hooks = configuration.hooks
      @log = log
    end

    # @param name [Symbol]
    # @param arguments [Array<Object>] what the blocks get
    # @return [void]
    # @raise [ConfigurationError] one line
    def call(name, *arguments)
      @hooks[name].each { |block| block.call(*arguments) }
    rescue StandardError, ScriptError => e
      at = e.backtrace&.first.to_s[/\A.*?:\d+/]
      raise ConfigurationError, "#{name} raised at #{at}: #{e.message.lines.first.to_s.chomp} (#{e.class})"
    end

    # For a hook whose failure stops nothing: the error is logged.
    # @return [void]
    def try(name, *arguments)
      call(name, *arguments)
    rescue ConfigurationError => e
      @log.error "! #{e.message}"
    end

    # The same on a thread of its own, for a caller that cannot wait for ever.
    # @param seconds [Numeric] what the caller waits at most
    # @param names [Symbol, Array<Symbol>] one after the other
    # @return [void]
    def try_within(seconds, names, *arguments)
      wanted = [*names].reject { |name| @hooks[name].empty? }
      Thread.new { wanted.each { |name| try(name, *arguments) } }.join(seconds) unless wanted.empty?
    end
  end
end
