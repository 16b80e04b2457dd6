# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# A client of Action Cable: a WebsocketPeer that speaks actioncable-v1-json and does not show the server's heartbeats.

require "json"
require_relative "websocket_peer"

class CablePeer
  PROTOCOLS = "actioncable-v1-json, actioncable-unsupported"

  # @return [Integer] heartbeats so far
  attr_reader :pings
  # @return [String, nil] name of the session, by the protocol with history
  attr_reader :session

  # @param url [String] of the server
  # @param query [Hash] of the address
  def initialize(url, query = {}, origin: url, protocols: PROTOCOLS, path: "cable", **options)
    fields = { "Host" => URI(url).authority, "Origin" => origin, "Sec-WebSocket-Protocol" => protocols }.compact
    @peer = WebsocketPeer.new(url, [path, (URI.encode_www_form(query) unless query.empty?)].compact.join("?"),
                              fields: fields, **options)
    @pings = 0
  end

  def head = @peer.head
  def close = @peer.close
  def hear_close = @peer.hear_close
  def say(text) = @peer.say(text)
  def reset = @peer.reset

  # Heartbeats come all the time, so a message that never comes needs a limit of its own.
  PATIENCE = 120

  # @return [Hash] the next message that is no heartbeat
  def hear
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    loop do
      message = JSON.parse(@peer.hear)
      return message unless message["type"] == "ping"

      @pings += 1
      raise "nothing but heartbeats for #{PATIENCE} s" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
    end
  end

  # @return [CablePeer] itself, welcomed
  def welcomed
    message = hear
    @session = message["sid"]
    raise "not welcomed: #{message}" unless message == { "type" => "welcome", "sid" => @session }.compact

    self
  end

  def command(name, identifier, **more)
    @peer.say(JSON.generate({ command: name, identifier: identifier, **more }))
    self
  end

  # @return [String] the identifier
  def ask(channel, **params)
    identifier = JSON.generate({ channel: channel, **params })
    command("subscribe", identifier)
    identifier
  end

  # @return [String] the identifier of a subscription that was confirmed
  def subscribe(channel = "RoomsChannel", **params)
    identifier = ask(channel, **params)
    message = hear
    raise "not confirmed: #{message}" unless message == { "identifier" => identifier, "type" => "confirm_subscription" }

    identifier
  end

  def perform(identifier, action, **data)
    command("message", identifier, data: JSON.generate({ action: action, **data }))
  end

  # @return [Object] the next message, which is of this subscription
  def hear_of(identifier)
    message = hear
    raise "another subscription: #{message}" unless message["identifier"] == identifier && message.key?("message")

    message["message"]
  end
end
