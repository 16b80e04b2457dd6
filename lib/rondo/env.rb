# frozen_string_literal: true

# What every env starts with besides the server's own values: rack.errors, and the keys that only
# Rack 2 wants. The extension reads both constants when a server is made.
# SPDX-License-Identifier: MIT

module Rondo
  # rack.errors: writes to $stderr, whatever that is at the time. Its inspect is a constant, because
  # applications print their env.
  class Errors
    # @param objects [Array<Object>]
    # @return [nil]
    def puts(*objects)
      $stderr.puts(*objects)
    end

    # @param string [String]
    # @return [Integer] bytes
    def write(string)
      $stderr.write(string)
    end

    # @return [self]
    def flush
      $stderr.flush
      self
    end

    # Does nothing, because all requests share the stream. Logger accepts only a device that can be closed.
    # @return [nil]
    def close; end

    # @param object [Object]
    # @return [self]
    def <<(object)
      write(object.to_s)
      self
    end

    # @return [true] every line leaves at once
    def sync
      true
    end

    # @param value [Boolean] has no effect
    def sync=(value); end

    # @return [Boolean]
    def tty?
      $stderr.tty?
    end
    alias isatty tty?

    # @return [String]
    def inspect
      "#<Rondo::Errors>"
    end
  end

  # The one that every request gets.
  # @api private
  ERRORS = Errors.new

  # @api private
  # @return [Boolean] whether Rack 2 is loaded, whose applications join header values by "\n" and
  #   look at rack.version and its friends
  def self.rack2?
    defined?(::Rack.release) ? ::Rack.release.start_with?("2.") : false
  end

  # What every env has besides, by key.
  # @api private
  ENV_EXTRAS = {} # rubocop:disable Style/MutableConstant -- filled below

  # Asked anew for every server: the command line loads Rack after Rondo.
  # @api private
  # @param threads [Integer] that may run the application at the same time
  # @param workers [Boolean] whether other processes may run it as well
  # @return [void]
  def self.choose_env_extras(threads:, workers:)
    return ENV_EXTRAS.clear unless rack2?

    ENV_EXTRAS.update("rack.version" => [1, 3].freeze, "rack.multithread" => threads > 1,
                      "rack.multiprocess" => workers, "rack.run_once" => false)
  end
end
