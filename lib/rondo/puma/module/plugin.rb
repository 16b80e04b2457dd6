# frozen_string_literal: true

# Puma::Plugin and Puma::Plugins of a bundle without the gem puma: how a file puma/plugin/NAME.rb tells its class.
# SPDX-License-Identifier: MIT

module Puma
  # There is no such plugin, or its file registers another one.
  class UnknownPlugin < RuntimeError; end

  # Classes of plugins by name.
  class PluginRegistry
    def initialize
      @plugins = {}
      @background = []
    end

    # @param name [String]
    # @param plugin [Class]
    # @return [void]
    def register(name, plugin)
      @plugins[name.to_s] = plugin
    end

    # @param name [String, Symbol]
    # @return [Class]
    # @raise [UnknownPlugin]
    def find(name)
      @plugins.fetch(name.to_s) { raise UnknownPlugin, "no plugin has registered itself as #{name}" }
    end

    # For code that registers a block by itself; a plugin has `in_background`, which belongs to its server.
    # @param block [Proc]
    # @return [void]
    def add_background(block)
      @background << block
    end

    # @return [Array<Thread>]
    def fire_background
      @background.map { |block| Thread.new(&block) }
    end
  end

  Plugins = PluginRegistry.new

  # A plugin; its file makes a subclass by {create}.
  class Plugin
    FILE = %r{(?:\A|/)puma/plugin/([^/]*)\.rb\z}

    # @yield the body of the class
    # @return [void]
    # @raise [UnknownPlugin] the caller is no file puma/plugin/NAME.rb
    def self.create(&block)
      path = caller_locations(1, 1).first.path
      name = path[FILE, 1] or raise UnknownPlugin, "#{path} is not a file puma/plugin/NAME.rb"
      Plugins.register(name, Class.new(self, &block))
    end

    # @yield on a thread of its own, when the server has booted
    # @return [void]
    def in_background(&block)
      Plugins.add_background(block)
    end
  end
end
