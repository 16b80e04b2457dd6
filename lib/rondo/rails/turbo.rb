# frozen_string_literal: true

# Turbo Streams by Server-Sent Events: the helper turbo_stream_source_from, and what its <turbo-stream-source> asks. A
# broadcast of Turbo is a String of HTML in JSON; a stream of events has the HTML itself. Where broadcasts are kept
# (config.rondo.cable_history), an event has its id, and a browser that comes back goes on after the last one it saw.
# SPDX-License-Identifier: MIT

require "cgi"

module Rondo
  module Rails
    # The application at config.rondo.turbo_path, and the helper of views.
    # @api private
    class TurboSource
      # Ends the streams of this process, whose browsers come back.
      RESTART = "#{Cable::PREFIX}turbo".freeze
      # Milliseconds after which a browser comes back.
      RETRY_MS = 1000
      HEADERS = { "content-type" => "text/plain; charset=utf-8" }.freeze

      # What views get.
      module Helper
        # Like turbo_stream_from, without a WebSocket.
        # @param streamables [Array<Object>]
        # @param attributes [Hash] of the element
        # @return [String]
        # @raise [ArgumentError] streamables are blank
        def turbo_stream_source_from(*streamables, **attributes)
          raise ArgumentError, "streamables can't be blank" unless streamables.any?(&:present?)

          name = ::Turbo::StreamsChannel.signed_stream_name(streamables)
          root = ::Rails.application.config.relative_url_root
          tag.turbo_stream_source(**attributes, src: "#{root}#{TurboSource.path}?stream=#{CGI.escape(name)}")
        end
      end

      class << self
        # @return [String] where it is mounted
        attr_reader :path

        # @param app [Rails::Application]
        # @return [void]
        # @raise [ConfigurationError] one line
        def attach(app)
          path = @path = app.config.rondo.turbo_path
          unless path.is_a?(String) && path.match?(%r{\A/[\w/-]+\z})
            raise ConfigurationError, "config.rondo.turbo_path must be a path such as \"/turbo-events\", not " \
                                      "#{path.inspect}"
          end

          app.routes.prepend { mount TurboSource.new => path, internal: true, anchor: true }
          ActiveSupport.on_load(:action_view) { include Helper }
        end
      end

      # @param env [Hash]
      # @return [Array(Integer, Hash, Array)]
      def call(env)
        name = env["QUERY_STRING"].to_s[/(?:\A|&)stream=([^&]*)/, 1]
        stream = ::Turbo::StreamsChannel.verified_stream_name(CGI.unescape(name)) if name
        return refuse(404, "There is no such stream") unless stream
        return refuse(406, "This is a stream of events") unless env["rack.upgrade?"] == :sse

        env["rack.upgrade"] = Stream.new(stream)
        [200, {}, []]
      end

      private

      def refuse(status, text)
        [status, HEADERS.dup, ["#{text}\n"]]
      end

      # The handler of one stream of events (docs/PUSH.md).
      class Stream
        # @return [Client]
        attr_reader :client

        # @param broadcasting [String]
        def initialize(broadcasting)
          @broadcasting = broadcasting
        end

        # The first event has no data: the browser comes back soon, and knows from when on, also if nothing came.
        # @param client [Client]
        # @return [void]
        def on_open(client)
          @client = client
          client.subscribe(RESTART) { client.close }
          Cable.history ? go_on : listen
        rescue StandardError, ScriptError => e # an adapter that is away
          ::ActionCable.server.logger.error("#{@broadcasting} has no stream of events: #{e.message} (#{e.class})")
          client.close
        end

        # @return [void]
        def on_close(_client)
          @member&.leave
        end

        # A name of the server's, for {Cable::FanOut}.
        # @param member [Cable::FanOut::Member]
        # @return [Boolean] false: the client is closed
        def join(member)
          @client.subscribe(member.name) ? true : false
        end

        # @param member [Cable::FanOut::Member]
        # @return [void]
        def leave(member)
          @client.unsubscribe(member.name)
        end

        private

        def listen
          @client.event(nil, retry: RETRY_MS)
          @member = ::ActionCable.server.join_stream(@broadcasting, nil, self)
          @member.entry.when_subscribed do |error|
            next unless error

            ::ActionCable.server.logger.error("#{@broadcasting} has no stream of events: #{error.message}")
            @client.close
          end
        end

        def go_on
          seen = @client.env["HTTP_LAST_EVENT_ID"]
          @client.event(nil, retry: RETRY_MS, id: seen ? nil : Cable::History.now)
          @client.subscribe(Cable::History.channel(@broadcasting)) do |_, message, id|
            html = Cable::FanOut.html_of(message)
            @client.event(html, id: id) if html
          end
        end
      end
    end
  end
end
