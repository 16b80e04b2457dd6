# frozen_string_literal: true

# Everything that a channel of Action Cable may do.
# SPDX-License-Identifier: MIT

class RoomsChannel < ApplicationCable::Channel
  VERSION = "the first"

  # Where the callbacks of these channels were run.
  mattr_accessor :seen, default: Queue.new

  def subscribed
    return reject if params["room"] == "closed"

    case params["how"]
    when "callback" then stream_from(room) { |message| transmit({ called: message, busy: busy }) }
    when "coder" then stream_from(room, coder: ActiveSupport::JSON) { |message| transmit({ decoded: message["text"] }) }
    when "for" then stream_for(Note.find(params["id"]))
    when "silent" then nil
    when "twice" then [room, "#{room} too"].each { |name| stream_from(name) }
    else stream_from(room)
    end
  end

  def unsubscribed
    seen << "left #{room} #{visitor}"
  end

  # @return [Boolean] whether Rails' executor is around this
  def busy
    Rails.application.executor.active?
  end

  def version = transmit({ version: VERSION, seen: seen.size })
  def echo(data) = transmit({ echo: data["text"], visitor: visitor, busy: busy })
  def say(data) = ActionCable.server.broadcast(room, { text: data["text"] })
  def other(data) = stream_from(data["room"])
  def quiet(data) = stop_stream_from(data["room"])
  def fails = raise("on purpose")
  def reload_note(data) = RoomsChannel.broadcast_to(Note.find(data["id"]), { changed: true })
  def protocol = transmit({ protocol: connection.env["SERVER_PROTOCOL"] })
  def threads = transmit({ threads: Thread.list.map { |thread| thread.name.to_s } })
  def farewell = ActionCable.server.remote_connections.where(visitor: visitor).disconnect
  def raw(data) = ActionCable.server.broadcast(room, data["text"], coder: nil)

  # Whose socket it is, and what it talks to.
  def of_server
    socket = connection.of_server
    transmit({ native: !socket.nil?, kind: socket.instance_variable_get(:@target).class.name[/ActionCable::Server::Socket/] })
  end

  # How many versions of this class there are.
  def classes
    GC.start
    transmit({ classes: ObjectSpace.each_object(Class).count { |one| one.name == self.class.name } })
  end

  # One event of a connection at a time: this would show another one in between.
  def slowly(data)
    transmit({ begin: data["number"] })
    Thread.pass
    transmit({ end: data["number"] })
  end

  private

  def room = "room #{params["room"]}"
end
