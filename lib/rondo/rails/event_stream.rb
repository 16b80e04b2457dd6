# frozen_string_literal: true

# Actions that answer with a stream of events and hold no thread: what is published goes from the server to the browser.
# SPDX-License-Identifier: MIT

module Rondo
  module Rails
    # For controllers:
    #
    #     class NewsController < ApplicationController
    #       include Rondo::Rails::EventStream
    #
    #       def index
    #         stream_from "news"
    #       end
    #     end
    #
    #     Rondo.publish("news", "a line")
    module EventStream
      # The client of a stream, once it is open.
      # @api private
      # @api private
      class Subscriptions
        # @param channels [Array<String, Symbol>]
        # @param since [Integer, Time, nil] as for {Client#subscribe}
        def initialize(channels, since)
          @channels = channels
          @options = since.nil? ? {} : { since: since }
        end

        # A client that cannot have all of them comes back later.
        # @param client [Client]
        # @return [void]
        def on_open(client)
          client.close(1013) unless @channels.all? { |name| client.subscribe(name, **@options) }
        end
      end

      private

      # Answers with a stream of what is published to these channels (WHATWG HTML, section 9.2). Cookies, the session
      # and header fields are as in any answer. A request that is not of an EventSource gets 406, and so does one that
      # another server has.
      # @param channels [Array<String, Symbol>] names, at least one
      # @param since [Integer, Time, nil] what is sent first of their history; nil: what came after the last event that
      #   the browser saw
      # @return [void]
      # @raise [ArgumentError] without a channel
      def stream_from(*channels, since: nil)
        raise ArgumentError, "stream_from needs a channel" if channels.empty?
        return head(:not_acceptable) unless request.env["rack.upgrade?"] == :sse

        request.env["rack.upgrade"] = Subscriptions.new(channels, since)
        head :ok
      end
    end
  end
end
