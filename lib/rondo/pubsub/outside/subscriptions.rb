# frozen_string_literal: true

# The application by which a page that no application has made subscribes: a static file with signed names in it.
# SPDX-License-Identifier: MIT

require "uri"
require "rondo/pubsub/signed"
require "rondo/pubsub/outside/expiries"

module Rondo
  module Signed
    # A Rack application. A WebSocket or a stream of events with `?channel=SIGNED` gets the messages of that channel;
    # several channels are several parameters. It only reads: what a client sends is dropped. Messages go to the client
    # without Ruby, and a stream of events that comes back goes on after the last event that it saw.
    # @example config.ru
    #   map("/events") { run Rondo::Signed::Subscriptions.new }
    class Subscriptions
      # Channels of one request.
      MOST = 16
      # Bytes of a query, at most.
      # @api private
      LONGEST = 65_536
      # Seconds between two lines of the log about names that are refused.
      # @api private
      QUIET = 60
      # Milliseconds after which a browser comes back.
      # @api private
      RETRY_MS = 1000
      # No cookie decides here, so a page of any origin may read what its signed name allows.
      # @api private
      HEADERS = { "content-type" => "text/plain; charset=utf-8", "cache-control" => "no-store",
                  "access-control-allow-origin" => "*" }.freeze

      # @param end_expired [Boolean] whether a client is ended when the first one of its names expires; else it stays
      #   until its connection ends, as with Turbo
      def initialize(end_expired: false)
        @expiries = Expiries.new if end_expired
      end

      # @param env [Hash{String => Object}] of Rack
      # @return [Array(Integer, Hash, Array<String>)] 403 if one of the names is not signed, or not any more;
      #   503 if there is no secret
      def call(env)
        return answer(503, "#{Signed.no_secret}\n") unless Signed.ready?

        names = names_of(env["QUERY_STRING"].to_s)
        return answer(403, "A channel is missing, or there are more than #{MOST}\n") unless names
        return refused(env) unless names.all?
        return answer(406, "This is a WebSocket, or a stream of events\n") unless env["rack.upgrade?"]

        env["rack.upgrade"] = reader(names)
        [200, { "access-control-allow-origin" => "*" }, []]
      end

      private

      # Counts it. The log has a line, one in a minute at most: expired names are nothing special.
      def refused(env)
        PubSub.core&.note_signed_refused
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        if @said.nil? || now - @said >= QUIET
          @said = now
          PubSub.log.warn "! A signed name of a channel was refused (403) for #{env["REMOTE_ADDR"]}: it is forged, " \
                          "or has expired"
        end
        answer(403, "A channel is not signed, or its signature has expired\n")
      end

      def answer(status, text)
        [status, HEADERS.dup, [text]]
      end

      def reader(names)
        due = @expiries && names.filter_map(&:last).min
        names = names.map(&:first).uniq
        due ? ExpiringReader.new(names, @expiries, due) : Reader.new(names)
      end

      # @return [Array<Array(String, Time), nil>, nil] verified names, and when they expire
      def names_of(query)
        return if query.bytesize > LONGEST

        given = query.split("&", 4 * MOST).filter_map { |part| part[/\Achannel=(.*)/m, 1] }.uniq
        given.map { |text| Signed.verified_until(decode(text)) } if given.size.between?(1, MOST)
      end

      # A plus of Base64 that was not escaped: no signed name has a blank.
      def decode(text)
        URI.decode_www_form_component(text).tr(" ", "+")
      rescue ArgumentError
        nil
      end

      # The handler of a client (docs/PUSH.md).
      # @api private
      class Reader
        # @param names [Array<String>] of channels
        def initialize(names)
          @names = names
        end

        # A client that cannot have all of them comes back later.
        # @param client [Client]
        # @return [void]
        def on_open(client)
          client.event(nil, retry: RETRY_MS) if client.protocol == :sse
          client.close(1013) unless @names.all? { |name| client.subscribe(name) }
        end
      end

      # The same, for names that expire.
      # @api private
      class ExpiringReader < Reader
        # @param names [Array<String>] of channels
        # @param expiries [Expiries]
        # @param due [Time]
        def initialize(names, expiries, due)
          super(names)
          @expiries = expiries
          @due = due
        end

        # @param client [Client]
        # @return [void]
        def on_open(client)
          super
          client.close(1013) unless @expiries.add(client, @due)
        end

        # @param client [Client]
        # @return [void]
        def on_close(client)
          @expiries.remove(client, @due)
        end
      end
    end
  end
end
