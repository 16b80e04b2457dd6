# frozen_string_literal: true

# The worker of a machine (ext/rondo/messaging/subscribing.c, cluster/link_replays.c) with its connections, and the
# clients at their other ends.
# SPDX-License-Identifier: MIT

module Simulate
  # What a client got on one channel: messages and resets, in their order. `since`: with what id it came at last.
  # `owed`: a text that it must get because it was published after it had subscribed. `start`: where it was when its
  # subscription was there, if it came without an id.
  Seen = Struct.new(:events, :since, :owed, :is_late, :start, :first_at)

  # A connection; what is in `inbox` is on its way to the client. While it waits for answers everything is held back
  # (ext/rondo/messaging/hold.c).
  class Connection
    attr_reader :inbox
    attr_accessor :is_closed, :waits

    def initialize
      @inbox = []
      @held = []
      @waits = 0
    end

    # @param event [Array] what happens, the channel, an id, a text; without an id it goes first. A reset of an answer has
    #   up to where messages are missing, for {Promises}
    def give(*event)
      @held << event
      settle
    end

    # All that is held, by ascending id.
    def settle
      return if @waits.positive?

      @inbox.concat(@held.sort_by.with_index { |event, index| [event[2], index] })
      @held.clear
    end
  end

  class Worker
    Ticket = Struct.new(:number, :channel, :connection, :is_given_up)

    attr_reader :to_hub, :tickets

    def initialize
      @subscribed = Hash.new { |all, channel| all[channel] = [] }
      @tickets = []
      @to_hub = []
      @count = 0
    end

    def subscribe(connection, channel)
      add(connection, channel)
      @to_hub << [:subscribe, channel] if @subscribed[channel].size == 1 && !ticket?(channel)
    end

    def replay(connection, channel, since)
      connection.waits += 1
      @tickets << Ticket.new(@count += 1, channel, connection)
      @to_hub << [:replay, channel, since, @count]
    end

    def publish(channel, text)
      @to_hub << [:publish, channel, text]
    end

    def leave(connection)
      connection.is_closed = true
      @subscribed.each do |channel, connections|
        next unless connections.delete(connection)

        @to_hub << [:unsubscribe, channel] if connections.empty? && !ticket?(channel)
      end
    end

    # The oldest replay has no answer in time.
    # @return [Ticket, nil]
    def give_up
      ticket = @tickets.find { |each| !each.is_given_up && !each.connection.is_closed } or return
      ticket.is_given_up = true
      connection = ticket.connection
      add(connection, ticket.channel)
      connection.give(:late, ticket.channel, 0)
      answered(connection)
      @to_hub << [:subscribe, ticket.channel]
      ticket
    end

    def take(type, channel, *rest)
      case type
      when :message
        return give(@tickets.first, channel, *rest) if @is_replaying

        @subscribed[channel].each { |connection| connection.give(:message, channel, *rest) }
      when :gap then @subscribed[channel].each { |connection| connection.give(:reset, channel, *rest) }
      when :begin
        @is_replaying = true
        @floor = rest.last
      when :end then finish(channel, rest.last)
      end
    end

    private

    def add(connection, channel)
      @subscribed[channel] << connection
    end

    def ticket?(channel)
      @tickets.any? { |ticket| ticket.channel == channel }
    end

    def give(ticket, channel, *rest)
      ticket.connection.give(:replayed, channel, *rest) unless ticket.is_given_up
    end

    def answered(connection)
      connection.waits -= 1
      connection.settle
    end

    def finish(channel, kind)
      @is_replaying = false
      ticket = @tickets.shift
      unless ticket.is_given_up || ticket.connection.is_closed
        add(ticket.connection, channel)
        ticket.connection.give(:reset, channel, 0, @floor) if %i[gap unknown].include?(kind)
        answered(ticket.connection)
      end
      @to_hub << [:unsubscribe, channel] if @subscribed[channel].empty? && !ticket?(channel)
    end
  end

  # Comes, reads, goes, comes back at another machine with the last id that it has seen.
  class Client
    attr_reader :name, :channels, :machine, :seen, :connection

    # @param has_one_id [Boolean] as an event stream: the last id is that of any of its channels
    def initialize(name, channels, has_one_id)
      @name = name
      @channels = channels
      @has_one_id = has_one_id
      @seen = channels.to_h { |channel| [channel, Seen.new([])] }
      @ids = {}
    end

    def come(machine)
      @machine = machine
      @connection = Connection.new
      @channels.each do |channel|
        seen = @seen[channel]
        start = seen.since ? 0 : seen.start # of the connection before
        seen.since = @has_one_id ? @last_id : @ids[channel]
        seen.events << [:came, seen.since, machine.name, start]
        next machine.worker.replay(@connection, channel, seen.since) if seen.since

        seen.owed = seen.start = seen.first_at = nil
        machine.worker.subscribe(@connection, channel)
      end
    end

    # What is on its way is lost.
    def leave
      @machine&.worker&.leave(@connection)
      @machine = @connection = nil
    end

    def read
      type, channel, id, text = @connection&.inbox&.shift
      return unless type

      seen = @seen[channel]
      seen.events << [type, id, text, seen.since ? 0 : seen.start]
      return if type == :reset || !id.positive?

      @last_id = id
      @ids[channel] = id
    end

    # Whether it has the answers of all its channels.
    def whole?
      @machine && @machine.worker.tickets.none? { |ticket| ticket.connection.equal?(@connection) } && @connection.inbox.empty?
    end

    def begin_anew
      @seen.each_value { |seen| seen.owed = seen.start = seen.first_at = nil }
    end

    def owe(channel, text)
      seen = @seen[channel]
      seen.owed ||= text if seen && seen.since.nil?
    end
  end
end
