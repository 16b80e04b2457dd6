# frozen_string_literal: true

# What `require "rondo"` gives: Rondo::Server and its errors. It parses no command line, sets no
# trap and starts nothing.
# SPDX-License-Identifier: MIT

require "rondo/version"
require "rondo/env"
begin
  require "rondo/rondo"
rescue LoadError => e
  raise unless e.path == "rondo/rondo" # it is there, and the system cannot load it

  require "rondo/not_compiled"
  raise Rondo::NotCompiled, nil, [], cause: nil
end
require "rondo/config/address"
require "rondo/config/fiber_count"
require "rondo/boot/port_holder"
require "rondo/logger"
require "rondo/error_page"
require "rondo/static_folder"
require "rondo/reporter"
require "rondo/identity"
require "rondo/origins"
require "rondo/upgrades"
require "rondo/pubsub"
require "rondo/tasks"
require "rondo/fibers/scheduler"
require "rondo/process/outgoing"
require "rondo/process/raw"
require "rondo/process/sites"
require "rondo/boot/entrance"
require "rondo/server"
require "rondo/rails/loading"
require "rondo/capybara" if defined?(Capybara)

# An application server for Rack.
module Rondo
  autoload :Program, "rondo/process/program"
  autoload :Root, "rondo/process/root"
  autoload :Fibers, "rondo/fibers/fibers"
  autoload :Offload, "rondo/fibers/offload"
  autoload :Frameworks, "rondo/fibers/frameworks"
  autoload :RequestIds, "rondo/boot/request_ids"
  autoload :StatusPage, "rondo/status_page/application"
  autoload :Signed, "rondo/pubsub/signed"
  autoload :Publisher, "rondo/pubsub/publisher"
  autoload :Databases, "rondo/fibers/databases"

  class << self
    # @api private
    # @return [Boolean, nil] whether the command or {Rondo.start} has this process
    attr_accessor :taken
    # @api private
    # @return [Array(String, String), nil] address and token of the control server; the token may be nil
    attr_accessor :control
  end

  # Serves until the server is told to stop, by a signal as a server that the command `rondo` began. Settings are the
  # verbs of the configuration file; what they leave open comes from the environment, as it does there. With workers
  # this process is the master. A restart executes the program anew, so what stands before the call runs in every
  # generation, and what stands behind it runs when the server has stopped, unless USR2 has replaced this process.
  # @example
  #   Rondo.start(->(env) { [200, {}, ["hello"]] }, port: 3000, workers: 2, threads: 5)
  # @param app [#call, nil] nil: config.ru is loaded
  # @param settings [Hash{Symbol => Object}] verbs with their values; an Array is several values
  # @yield further verbs, also hooks
  # @return [true] when the server has stopped
  # @raise [Error] one line: what cannot be served, or a server runs in this process already
  # @raise [SignalException] after TERM, as `raise_exception_on_sigterm` says
  def self.start(app = nil, **settings, &verbs)
    Program.run(app, settings, &verbs)
  end

  # Runs blocks at once, each in a fiber of this thread: while one waits, the others go on. Returns when all of them
  # have ended. In a fiber that has a scheduler already, also another one than {Scheduler}, the blocks use that one.
  # @example
  #   pages = Rondo.fibers(limit: 100) { |all| all.map(uris) { |uri| Net::HTTP.get(uri) } }
  # @param limit [Integer] how many blocks run at once
  # @yield [Fibers] to start blocks
  # @return what the block returns
  # @raise what one of the blocks raises, if nobody has asked for its value
  def self.fibers(limit: 1000, &block)
    Fibers.run(limit, block)
  end

  # Runs the block on another thread, for what does not let other fibers run while it waits: a long computation, a
  # driver without hooks. There are few such threads. If the caller ends before, the block goes on.
  # @return what the block returns
  # @raise what the block raises
  def self.offload(&block)
    Offload.run(block)
  end

  # A configuration that cannot be used: a message of one line, naming file and line.
  class ConfigurationError < Error; end
end

Rondo::Frameworks.watch if defined?(ActiveSupport)
Rondo::Rails.attach

# This process replaced another one, or is a mold. A program, and a configuration file, may start other programs
# before the server takes what was left for it.
if %w[RONDO_INHERITED RONDO_CERTIFICATES RONDO_TICKETS RONDO_MOLD].any? { |name| ENV.key?(name) }
  require "rondo/boot/inherited"
  Rondo::Inherited.withhold
end
