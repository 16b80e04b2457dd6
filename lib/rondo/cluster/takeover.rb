# frozen_string_literal: true

# The last step of a master before it becomes another program by exec: it keeps open the descriptors that the next
# program needs, and names them in environment variables. The next program reads these (inherited.rb, succession.rb,
# hub.rb).
# SPDX-License-Identifier: MIT

require "rondo/boot/inherited"
require "rondo/boot/ticket_keys"
require "rondo/cluster/succession"
require "rondo/pubsub/hub"

module Rondo
  # Hands the sockets, molds, workers and published messages of a {Cluster} to the next program.
  # @api private
  class Takeover
    # @param cluster [Cluster]
    # @param control [Control, nil]
    # @param command [Hash] of {Inherited.command}; `variables` and `keep` of it go along
    def initialize(cluster, control, command)
      @cluster = cluster
      @control = control
      @command = command
    end

    # Returns only where the other program cannot be executed.
    # @param current [MoldHandle] with the new code
    # @param previous [MoldHandle, nil]
    # @param environment [Hash{String => String, nil}] variables to restore
    # @return [void]
    def exec(current, previous, environment)
      text, keep = Succession.hand_on(current, previous, @cluster.supervisor.workers)
      @cluster.loop.restore_signals(except: Inherited::EARLY)
      listeners = Inherited.hand_on(@cluster.slots.all.map { |url, io| [url, io.fileno] })
      published, links, engine = hand_on_messages
      more, kept = hand_on_what_is_secret
      fetched = @cluster.fetched
      foreign = [*@cluster.slots.foreign, *fetched&.foreign]
      sockets = [*listeners, *fetched&.rest]
      Inherited.exec_again(@command, sockets, foreign: foreign, redirects: [*fetched&.redirects],
                                              keep: [*keep, *links, *kept], materials: @cluster.slots.materials,
                                              more: { Succession::VARIABLE => text, Hub::VARIABLE => published,
                                                      **engine, **more, **environment })
    rescue Error, SystemCallError => e
      @cluster.log.error "! #{e.message}"
      [*listeners&.map(&:last), *kept].each(&:close)
      keep&.each { |io| io.close_on_exec = true }
    end

    private

    def hand_on_what_is_secret
      tickets, kept = TicketKeys.hand_on(@cluster.tickets)
      [{ **tickets, **@command.fetch(:variables, {}) }, [*kept, *@command[:keep]]]
    end

    # The control server first: it shows what the hub has.
    def hand_on_messages
      @control&.hand_on
      @control&.close
      engine = @cluster.engine&.rest
      @cluster.metrics&.rest
      published = @cluster.hub.hand_on
      @cluster.engine&.say_unclaimed_lost
      [*published, engine.to_h]
    end
  end
end
