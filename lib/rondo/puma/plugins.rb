# frozen_string_literal: true

# Plugins of Puma: the verb `plugin` reads them (puma/plugin/NAME.rb), and the process that has loaded the application
# runs them: the only one, or the mold of each generation. What a plugin does wrong is one line with its name; only when
# it cannot start does that keep the server from starting. docs/PUMA.md is the manual.
# SPDX-License-Identifier: MIT

require "rondo/boot/error"
require "rondo/boot/fork_safety"
require "rondo/puma/children"
require "rondo/puma/library"

module Rondo
  # The plugins of a process.
  # @api private
  class Plugins
    # A plugin that the configuration file names.
    Named = Struct.new(:name, :object)
    NAME = %r{\A\w[\w/-]*\z}
    # Seconds that background blocks get to end by themselves.
    PATIENCE = 1

    class << self
      # Loads the file of a plugin.
      # @param name [String, Symbol]
      # @return [Named]
      # @raise [ConfigurationError] half a line
      def read(name)
        raise ConfigurationError, "plugin #{name.inspect} is not the name of a plugin" unless name.to_s.match?(NAME)

        guard("plugin #{name} cannot be loaded") do
          PumaLibrary.load
          find_file(name)
          Named.new(name.to_s, ::Puma::Plugins.find(name).new)
        end
      end

      # @return [Plugins, nil] nil: there are none
      def for(configuration, ...)
        new(configuration, ...) if configuration.plugins.any?
      end

      # Whatever a plugin does in the block, it does not end this process, and does not go on in a copy of it.
      # @param what [String] that it could not do, in words
      # @raise [ConfigurationError] one line
      def guard(what, &block)
        ForkSafety.here_only(what, &block)
      rescue Error
        raise
      rescue SystemExit, StandardError, ScriptError => e
        raise ConfigurationError, "#{what}: #{words(e)}"
      end

      private

      def find_file(name)
        require "puma/plugin/#{name}"
      rescue LoadError => e
        raise unless e.path == "puma/plugin/#{name}"

        raise ConfigurationError, "plugin #{name}: no gem has the file puma/plugin/#{name}.rb"
      end

      def words(error)
        return "it called exit#{place(error)}" if error.is_a?(SystemExit)

        "#{BootError.words(error)}#{place(error)}"
      end

      def place(error)
        at = error.backtrace&.find { |line| !line.start_with?("<internal:") }.to_s[/\A.*?:\d+/]
        at ? " at #{at}" : ""
      end
    end

    # @param configuration [Configuration] with plugins
    # @param log [Logger]
    # @param process [Object] as for {LauncherView#initialize}
    def initialize(configuration, log, process)
      require "rondo/puma/launcher_view"
      @plugins = configuration.plugins
      @log = log
      @blocks = []
      @threads = []
      @late = []
      @alone = []
      @launchers = @plugins.map do |plugin|
        LauncherView.new(configuration, log, process) { |name, block| call_event(plugin, name, block) }
      end
    end

    # @return [Array<String>] plugins that have started processes or listen in `start`: there is room for one of them
    attr_reader :alone

    # Calls `start` of each plugin. The application is loaded, and nothing is served yet.
    # @param late [Array<String>] plugins that start in {#booted}, because those of another generation are still there
    # @return [void]
    # @raise [ConfigurationError] one line
    def start(late: [])
      @plugins.zip(@launchers) do |plugin, launcher|
        collect_blocks(plugin)
        next unless plugin.object.respond_to?(:start)

        late.include?(plugin.name) ? @late << [plugin, launcher] : start_one(plugin, launcher)
      end
      fire(:state, :booting)
    end

    # The server is ready. Later calls do nothing.
    # @yield after what plugins do then
    # @return [void]
    def booted
      return if @booted

      start_late
      @booted = true
      @blocks.each { |name, block| begin_thread(name, block) }
      fire(:after_booted)
      yield if block_given?
      fire(:state, :running)
    end

    # Before this process ends, or becomes another program.
    # @param restart [Symbol, nil] :exec, it becomes another program, as a process of Puma does; :generation, it ends,
    #   and others go on. A plugin may do in before_restart what only another program undoes, so that is for those
    #   that do not know of after_stopped
    # @return [void]
    def stop(restart: nil)
      return if @ended

      @ended = true
      end_threads # one that watches a process would take its end for a failure
      fire(:state, restart ? :restart : :stop)
      @launchers.each { |launcher| launcher.events.fire(last_event(launcher.events, restart)) }
      fire(:state, :done)
    end

    # @api private
    # @param name [String] of the plugin
    # @param block [Proc] for a thread of its own, when the server has booted
    # @return [void]
    def add_block(name, block)
      @booted ? begin_thread(name, block) : @blocks << [name, block]
    end

    private

    def start_one(plugin, launcher)
      before = Children.pids + Children.listening
      Plugins.guard("plugin #{plugin.name} cannot start") { plugin.object.start(launcher) }
      @alone << plugin.name unless (Children.pids + Children.listening - before).empty?
    end

    def start_late
      @late.each { |plugin, launcher| saying { start_one(plugin, launcher) } }
    end

    def fire(...)
      @launchers.each { |launcher| launcher.events.fire(...) }
    end

    def last_event(events, restart)
      return :after_stopped if restart.nil? || (restart == :generation && events.registered?(:after_stopped))

      :before_restart
    end

    def call_event(plugin, name, block)
      saying { Plugins.guard("plugin #{plugin.name}, #{name}") { block.call } }
    end

    # The server goes on whatever happens in the block.
    def saying
      yield
    rescue Error => e
      @log.error "! #{e.message}"
    end

    # Its blocks end with this server, also where the gem would keep them for all servers of the process.
    def collect_blocks(plugin)
      plugins = self
      plugin.object.define_singleton_method(:in_background) { |&block| plugins.add_block(plugin.name, block) }
    end

    def end_threads
      threads = @threads - [Thread.current]
      threads.each(&:kill)
      threads.each { |thread| thread.join(PATIENCE) }
    end

    def begin_thread(name, block)
      @threads << Thread.new do
        Thread.current.name = "plugin #{name}"
        Thread.current.thread_variable_set(:fork_safe, true)
        saying { Plugins.guard("plugin #{name}, background block") { block.call } }
      end
    end
  end
end
