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
    # @param env [Hash] the variable is removed
    # @return [ClusterEngine, nil] nil: none is asked for
    # @raise [Error, SystemCallError] one line
    def self.open(cluster, env = ENV)
      lineage = lineage_of(env.delete(Hub::ENGINE))
      engine = PubSub::Configured.make(cluster.settings, cluster.log)
      return cluster.hub.expect_no_engine unless engine

      engine.lineage = lineage if engine.is_a?(PubSub::Queued)
      new(engine, cluster).tap(&:go_on)
    end

    # @param text [String, nil] of {#rest}. Programs that were started there inherit the variable, so it has the PID
    # @return [String, nil]
    def self.lineage_of(text)
      pid, lineage = text.to_s.split
      lineage if pid.to_i == Process.pid
    end
    private_class_method :lineage_of

    # @param engine [PubSub::Engine]
    # @param cluster [Cluster]
    def initialize(engine, cluster)
      @engine = engine
      @hub = cluster.hub
      @unclaimed_lost = 0
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
      say_unclaimed_lost
      @link = (keeps? ? hub_link(socket) : PubSub::EngineLink.new(@engine, socket, @log)).start(@answers)
    end

    # Messages that are published for it wait in the hub; messages that it already has are sent, and their answers go
    # to the workers. What cannot be sent goes back to the hub. On the thread of the loop, which does not turn any more.
    # @return [Hash{String => String}] variables for the next program
    def rest
      return {} unless unlink

      left = flush
      ours? ? give_back : say_lost(left)
      @answers.send_now(PATIENCE)
      lineage = @engine.lineage if ours?
      lineage ? { Hub::ENGINE => "#{Process.pid} #{lineage}" } : {}
    end

    # Messages for which the hub had no room while there was no engine.
    # @return [void]
    def say_unclaimed_lost
      before = @unclaimed_lost
      @unclaimed_lost = @hub.stats[:unclaimed_lost]
      lost = @unclaimed_lost - before
      @log.error "! #{lost} published messages above hub_queue_bytes are lost: there was no engine" if lost.positive?
    end

    # @param number [Integer] of a link of the hub
    # @return [Boolean]
    def link?(number)
      number == @number
    end

    # @return [void]
    def close
      # The engines of Rondo send what they have when they are closed, and say what they lose.
      say_lost(flush) if unlink && !ours?
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

    def ours?
      @engine.is_a?(PubSub::Queued)
    end

    # @return [Integer] messages that the engine still has
    def flush
      @engine.respond_to?(:flush) ? @engine.flush(PATIENCE) : 0
    end

    def give_back
      kept, lost = @engine.hand_on { |*words| give_back_one(*words) }
      @log.say "- #{kept} published messages wait for #{@engine.name}" if kept.positive?
      say_lost(lost)
    end

    def give_back_one(channel, message, number)
      note = PubSub::RelayFrames.returned(number)
      @hub.give_back(channel, message.encoding == Encoding::UTF_8 ? note + message : note.b << message)
    rescue StandardError => e
      @log.error "! #{@engine.class}: #{e.message}"
      false
    end

    def say_lost(count)
      @log.error "! #{count} published messages have not reached #{@engine.inspect}" if count.positive?
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
