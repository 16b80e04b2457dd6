# frozen_string_literal: true

# What the master does for plugins, which run in the molds. On the master's thread.
# SPDX-License-Identifier: MIT

require "rondo/puma/children"

module Rondo
  # The part of {Cluster} that is about plugins.
  # @api private
  module ClusterPlugins
    # Seconds after which a signal that a mold has got has reached this process, too, if it was sent to all of them. A
    # second one would mean that nothing is waited for.
    OWN_SIGNAL = 0.2

    # A plugin asks for something, in a mold.
    # @param verb [String, nil]
    # @return [void]
    def asked(verb)
      case verb
      when "stop" then stop_now unless @stopping
      when "halt" then stop_now(force: true)
      when "restart" then restart_now
      when "phased_restart" then phased_restart_now
      when "interrupt" then @loop.after(OWN_SIGNAL) { stop_now unless leaving? }
      end
    end

    # Bytes of addresses that a message has room for. With more of them plugins see none.
    MOST_ADDRESSES = 16_384

    # Before it loads anything: plugins may ask for the control server as soon as they start, and a random token is in
    # no setting.
    # @param mold [MoldHandle]
    # @return [void]
    def introduce(mold)
      mold.socket.notify(:control, url: @control&.url, token: @control&.token)
    end

    # With the scoreboard, which a mold that has forked no worker has not got, and with the addresses.
    # @param mold [MoldHandle]
    # @return [void]
    def notify_booted(mold)
      board = IO.for_fd(@board.fd, autoclose: false)
      urls = @slots.urls.join("\n")
      mold.socket.notify(:booted, ios: mold.plugins ? [board] : [], seats: @board.size,
                                  urls: urls.bytesize > MOST_ADDRESSES ? "" : urls)
    end

    # @return [Array<Integer>] children that are neither workers nor molds; none in a program, which may have its own
    def orphans
      return [] if @root || !@reaper

      Children.pids - @supervisor.workers.filter_map(&:pid) - @generations.pids
    end
  end
end
