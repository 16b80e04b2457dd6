# frozen_string_literal: true

# The engine that the settings ask for, once for a whole cluster: in the master, behind its hub. So there are
# two connections to Redis, however many workers there are.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/configured"
require "rondo/pubsub/engine_link"

module Rondo
  # Between the hub and an engine.
  # @api private
  class ClusterEngine
    # Seconds for messages that are on their way when this program is replaced or ends.
    PATIENCE = 2

    # @param cluster [Cluster] has settings, hub, loop and log; its supervisor comes later
    # @return [ClusterEngine, nil] nil: none is asked for
    # @raise [Error, SystemCallError] one line
    def self.open(cluster)
      engine = PubSub::Configured.make(cluster.settings, cluster.log) or return
      new(engine, cluster).tap(&:go_on)
    end

    # @param engine [PubSub::Engine]
    # @param cluster [Cluster]
    def initialize(engine, cluster)
      @engine = engine
      @hub = cluster.hub
      @log = cluster.log
      @answers = PubSub::Confirms::Routes.new(cluster.loop) do |pid|
        cluster.supervisor&.workers&.find { |worker| worker.pid == pid }&.socket
      end
    end

    # From now on the engine carries messages that are published for it, and those that have waited.
    # @return [void]
    # @raise [SystemCallError] no descriptor is left
    def go_on
      return if @number

      PubSub.default = PubSub::MASTER
      @number, socket = @hub.link_engine(keeps?)
      @link = (keeps? ? hub_link(socket) : PubSub::EngineLink.new(@engine, socket, @log)).start(@answers)
    end

    # Messages that are published for it wait in the hub; messages that it already has are sent, and their answers go
    # to the workers. On the thread of the loop, which does not turn any more.
    # @return [void]
    def rest
      return unless unlink

      flush
      @answers.send_now(PATIENCE)
    end

    # @return [void]
    def close
      # The engines of Rondo send what they have when they are closed, and say what they lose.
      flush if unlink && !@engine.is_a?(PubSub::Queued)
      PubSub::Configured.close(@engine, @log)
    end

    private

    # @return [Boolean] false: there was no link
    def unlink
      return false unless @number

      @link.expect_end
      @hub.unlink(@number)
      @link.finish(PATIENCE)
      @number = nil
      true
    end

    def flush
      left = @engine.respond_to?(:flush) ? @engine.flush(PATIENCE) : 0
      @log.error "! #{left} published messages have not reached #{@engine.inspect}" if left.positive?
    end

    def keeps?
      @engine.respond_to?(:hub_link=) && @engine.keeps?
    end

    def hub_link(socket)
      require "rondo/pubsub/queued/hub_link"
      @engine.hub_link = PubSub::Queued::HubLink.new(@engine, socket, @log)
    end
  end
end
