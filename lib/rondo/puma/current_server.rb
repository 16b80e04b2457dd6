# frozen_string_literal: true

# The server of this process, as Puma::Server.current shows it.
# SPDX-License-Identifier: MIT

require "rondo/config/puma_options"

module Rondo
  # Answers what gems ask of the server that serves them.
  # @api private
  class CurrentServer
    include WithoutValues

    # @param server [Server]
    # @param serving [Serving, nil]
    # @param configuration [Configuration]
    def initialize(server, serving, configuration)
      @server = server
      @serving = serving
      @configuration = configuration
    end

    # @return [Boolean] whether it is being stopped
    def shutting_down?
      @serving ? @serving.stopping? : false
    end

    # @return [Hash{Symbol => Integer}] as `last_status` of Puma's statistics
    def stats
      PumaLibrary.known_statistics.status(@server.stats)
    end

    %i[backlog running pool_capacity busy_threads max_threads requests_count].each do |name|
      define_method(name) { stats.fetch(name) }
    end

    # @return [Integer]
    def min_threads
      options[:min_threads]
    end

    # @return [PumaOptions]
    def options
      @configuration.options
    end

    # @return [Array<Integer>]
    def connected_ports
      PumaLibrary.ports(@server.addresses)
    end
  end
end
