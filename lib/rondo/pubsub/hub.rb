# frozen_string_literal: true

# The hub of a cluster, in the master: what a worker publishes goes from here to the workers whose
# clients want it. All of that is done by a native thread (ext/rondo/cluster/hub_thread.c); this gives it
# the workers, and hands it on to the program that the master becomes by exec.
# SPDX-License-Identifier: MIT

require "socket"
require "rondo"
require "rondo/config/settings"
require "rondo/pubsub/configured"

module Rondo
  # One socket to each worker. Also what Rondo.publish and Rondo::PubSub.history do in the master.
  # @api private
  class Hub
    # What the process before left: "FILE:DESCRIPTOR,…", a file with all there is and the sockets of the workers.
    VARIABLE = "RONDO_HUB"

    # The PID and {PubSub::Queued::Lineage} of its engine.
    ENGINE = "RONDO_ENGINE"

    LIMITS = %i[history_messages history_bytes hub_queue_bytes max_publish_bytes].freeze

    # For a process that continues without workers.
    # @param env [Hash] the variables are removed
    # @return [void]
    def self.dismiss(env = ENV)
      env.delete(ENGINE)
      env.delete(VARIABLE).to_s.split(/[:,]/).each { |number| IO.for_fd(number.to_i).close }
    rescue SystemCallError
      nil # the process that holds it reports the error
    end

    # Continues where the process before stopped.
    # @param settings [Settings::Resolved]
    # @param board [Scoreboard]
    # @param log [Logger]
    # @param env [Hash] the variable is removed
    def initialize(settings, board, log:, env: ENV)
      @log = log
      @settings = settings
      @board = board
      @core = new_core
      adopt(env.delete(VARIABLE))
      @core.expect_streams if PubSub::Configured.keeps?(settings)
      @core.start
    end

    # A worker is about to be forked.
    # @param seat [Integer] its row of the scoreboard
    # @return [Array(Integer, IO)] number of the link, and the worker's end, to be closed here afterwards
    # @raise [SystemCallError] no descriptor is left
    def link(seat)
      pair { |fd| @core.add(fd, seat) }
    end

    # Adds a subscription of this process.
    # @return [Array(Integer, IO)] number of the link, and the end where messages arrive
    # @raise [SystemCallError] no descriptor is left
    def link_root
      pair { |fd| @core.add_root(fd) }
    end

    # Adds an engine, which gets the messages that have waited for one.
    # @param keeps [Boolean] whether the engine keeps messages for all servers, and gives their ids
    # @return [Array(Integer, IO)] number of the link, and the engine's end
    # @raise [SystemCallError] no descriptor is left
    def link_engine(keeps = false) # rubocop:disable Style/OptionalBooleanParameter
      pair { |fd| @core.add_engine(fd, keeps) }
    end

    # There is no engine any more: what waits for one goes to the clients of this server.
    # @return [void]
    def expect_no_engine
      @core.expect_no_engine
    end

    # The worker has ended, or the engine has to end: it gets the queued messages first.
    # @param number [Integer, nil] of its link
    # @return [void]
    def unlink(number)
      @core.remove(number) if number
    end

    # @param channel [String, Symbol]
    # @param message [String, Hash, Array] as Rondo.publish
    # @param reach [Symbol] :cluster; :engine, which brings it back; :siblings, the workers; :root, this process
    # @return [Boolean] whether it was queued for all that want it
    # @raise [ArgumentError, TypeError]
    def publish(channel, message, reach = :cluster)
      @core.publish(channel, message, reach)
    end

    # Of an engine that was unlinked: the next one gets it before what is published since.
    # @param channel [String]
    # @param message [String] behind a note of {PubSub::RelayFrames}
    # @return [Boolean] false: there is no room
    def give_back(channel, message)
      @core.give_back(channel, message)
    end

    # @param rule [PubSub::Rule]
    # @return [void]
    def keep(rule)
      @core.keep(*rule)
    end

    # @yieldparam number [Integer] of a link that has begun to lose messages since the last time
    # @return [void]
    def each_outage
      while (number = @core.outage)
        yield number
      end
    end

    # @return [Hash{Symbol => Integer}] links, published, sent, dropped, queue_bytes, kept; unclaimed_lost: messages for
    #   an engine, while there was none
    def stats
      @core.stats
    end

    # Stops; for the program that this process becomes by exec. {#go_on} if that fails.
    # @return [Array(String, Array<IO>)] the variable's value, and what has to stay open
    # @raise [SystemCallError]
    def hand_on
      @rests = true
      @core.stop
      file, links = @core.save
      @handed_on = [IO.for_fd(file), *links.map { |_, descriptor| IO.for_fd(descriptor, autoclose: false) }]
      @handed_on.each { |io| io.close_on_exec = false }
      ["#{file}:#{links.map(&:last).join(",")}", @handed_on]
    end

    # Continues in this process, whether {#hand_on} was called or not.
    # @return [void]
    def go_on
      return unless @rests

      file, *links = @handed_on
      links&.each { |io| io.close_on_exec = true }
      file&.close
      @handed_on = nil
      @rests = false
      @core.start
    end

    # @return [void]
    def close
      @core.close
    end

    private

    # @yieldparam fd [Integer] the hub's end
    def pair
      own, other = UNIXSocket.pair(:STREAM)
      number = yield own.fileno
      own.autoclose = false
      [number, other]
    rescue SystemCallError
      [own, other].compact.each(&:close)
      raise
    end

    def new_core
      Core.new(@board, *LIMITS.map { |name| Settings.core_value(name, @settings[name]) })
    end

    # Workers whose link is lost still deliver messages of their own process.
    def adopt(text)
      return unless text

      file, *links = text.split(/[:,]/).map(&:to_i)
      file = IO.for_fd(file)
      return if @core.restore(file.fileno)

      @log.error "! The restart lost the history of published messages, and the old workers publish only to " \
                 "their own clients"
      @core.close
      links.each { |number| close_descriptor(number) }
      @core = new_core
    ensure
      file&.close
    end

    def close_descriptor(number)
      IO.for_fd(number).close
    rescue SystemCallError
      nil # it went with the hub
    end
  end
end
