# frozen_string_literal: true

# Clients of Rails that come back, and say where they were.
# SPDX-License-Identifier: MIT

require "support/cable_peer"
require "support/raw_client"

module RailsResuming
  EXTENDED = "actioncable-v1-ext-json, actioncable-v1-json"

  # A client as that of the protocol: it remembers where it was in the stream, and says so when it comes back.
  class Resuming
    attr_reader :numbers, :answers, :connections

    # @param urls [Array<String>] each visit is to the next of them
    # @param most [Integer] how many messages it takes of a visit
    def initialize(urls, room, most: Float::INFINITY)
      @urls = urls.cycle
      @identifier = JSON.generate({ channel: "RoomsChannel", room: room })
      @most = most
      @numbers = []
      @answers = []
      @connections = 0
      @history = { since: Time.now.to_i, streams: {} }
    end

    # @return [Array<Integer>] what it saw until the last one
    def run_to(last)
      visit(last) until @numbers.last == last
      @numbers
    end

    private

    def visit(last)
      peer = CablePeer.new(@urls.next, protocols: EXTENDED).welcomed
      @connections += 1
      before = @numbers.size
      peer.command("subscribe", @identifier, history: @history)
      while @numbers.last != last && @numbers.size - before < @most
        message = peer.hear
        return if message["type"] == "disconnect"

        message.key?("message") ? take(message) : @answers << message["type"]
      end
    rescue RuntimeError, SystemCallError, IOError # closed
      nil
    ensure
      peer&.close
    end

    def take(message)
      @numbers << message["message"]["text"]
      @history[:streams][message["stream_id"]] = message.slice("epoch", "offset")
    end
  end

  # @param lines [String] fields of the request
  # @return [String] what came until the end of an event, and `ending` before it
  def open_events(server, path, lines = "", ending = "id: ")
    RawClient.open(server.url) do |client|
      client.write("GET #{path} HTTP/1.1\r\nHost: #{URI(server.url).authority}\r\nAccept: text/event-stream\r\n#{lines}\r\n")
      seen = +""
      seen << client.read_some until seen.include?(ending) && seen.end_with?("\n\n")
      seen
    end
  end
end
