# frozen_string_literal: true

# The module Puma for a bundle without the gem puma: the parts that plugins, agents and applications ask for, over what
# this server has. Only this file and the folder module/ define Puma; all others of this folder are about it, and define
# Rondo. library.rb says when it is loaded; docs/PUMA.md lists what there is.
# SPDX-License-Identifier: MIT

require "json"
require "rondo"
require "rondo/config/configuration"
require "rondo/puma/events"
require "rondo/puma/library"
require "rondo/puma/module/log_writer"
require "rondo/puma/module/plugin"
require "rondo/puma/module/server"

# Puma's interface, answered by Rondo.
# @api private
module Puma
  # Tells this module from the gem's.
  OF_RONDO = true
  # The verbs of the configuration file. Plugins add theirs here.
  DSL = Rondo::Configuration::Verbs
  Configuration = Rondo::Configuration
  IS_JRUBY = false
  IS_WINDOWS = false
  IS_OSX = RUBY_PLATFORM.include?("darwin")
  IS_LINUX = RUBY_PLATFORM.include?("linux")
  HAS_FORK = true
  HAS_SSL = true
  HAS_UNIX_SOCKET = true

  # Versions whose interface this is.
  module Const
    VERSION = PUMA_VERSION = "8.0.2"
    CODE_NAME = "Rondo"
    PUMA_SERVER_STRING = "rondo #{Rondo::VERSION}".freeze
  end

  # Blocks by the names of events.
  class Events
    include Rondo::PumaEvents

    # @return [Events] whose events nobody sees
    def self.null
      new
    end
  end

  class << self
    # @return [String] JSON of {stats_hash}
    # @raise [Rondo::Error] no server runs in this process
    def stats
      JSON.generate(stats_hash)
    end

    # @return [Hash{Symbol => Object}]
    # @raise [Rondo::Error] no server runs in this process
    def stats_hash
      Rondo::PumaLibrary.known_statistics.stats
    end

    # @return [Rondo::Configuration, nil] `cli_config.options[:max_threads]` and so on
    def cli_config
      Rondo::PumaLibrary.configuration
    end

    # @param name [String] of this thread
    # @return [void]
    def set_thread_name(name) # rubocop:disable Naming/AccessorMethodName -- Puma's
      Thread.current.name = "puma #{name}"
    end

    # @return [Boolean]
    def jruby?
      IS_JRUBY
    end

    # @return [Boolean]
    def windows?
      IS_WINDOWS
    end

    # @return [Boolean]
    def osx?
      IS_OSX
    end

    # @return [Boolean]
    def linux?
      IS_LINUX
    end

    # @return [Boolean]
    def mri?
      true
    end

    # @return [Boolean]
    def forkable?
      HAS_FORK
    end

    # @return [Boolean]
    def ssl?
      HAS_SSL
    end
  end
end
