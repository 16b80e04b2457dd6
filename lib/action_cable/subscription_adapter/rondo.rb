# frozen_string_literal: true

# `adapter: rondo` in config/cable.yml: broadcasts go by the channels of the server, to all of its workers, and need
# nothing else on one machine. Consoles and jobs hand them to the server by a local socket
# (lib/rondo/rails/cable/publisher.rb).
# SPDX-License-Identifier: MIT

require "digest"
require "rondo"
require "rondo/rails/cable/publisher"
require "rondo/rails/cable/throttled_log"

module ActionCable
  module SubscriptionAdapter
    # Options of config/cable.yml: `socket_folder`, where the server listens for other processes
    # (tmp/rondo-cable of the application), and `channel_prefix`.
    # @api private
    class Rondo < Base
      prepend ChannelPrefix

      # The longest name of a broadcasting that is used as it is: a channel of the server has 1,024 bytes.
      NAME_BYTES = 900

      class << self
        # @param broadcasting [String]
        # @return [String] of the server's channel
        def channel(broadcasting)
          "#{prefix}#{shorten(broadcasting)}"
        end

        # @param broadcasting [String]
        # @return [String]
        def shorten(broadcasting)
          broadcasting.bytesize <= NAME_BYTES ? broadcasting : Digest::SHA256.hexdigest(broadcasting)
        end

        private

        # Applications may let clients choose names among all channels of the server. These names they cannot guess, no
        # pattern matches them (docs/decisions/0050-channels-of-the-server.md), and all processes and machines of the
        # application agree on them.
        def prefix
          @prefix ||= ["\0rondo:cable", secret&.unpack1("H*"), ""].compact.join(":")
        end

        def secret
          app = ::Rails.application if defined?(::Rails.application)
          app&.key_generator&.generate_key("rondo/cable", 16)
        end
      end

      # @param server [ActionCable::Server::Base]
      def initialize(server)
        super
        @map = Map.new
        @publisher = ::Rondo::Rails::Cable::Publisher.new(::Rondo::Rails::Cable::SocketFolder.new(server.config.cable))
        @log = ::Rondo::Rails::Cable::ThrottledLog.new(server.logger)
      end

      # Without a server there are no clients: seeds and consoles go on, and the log says so.
      # @param broadcasting [String]
      # @param payload [String]
      # @return [void]
      # @raise [Rondo::Error] a server is there, and the message cannot be sent
      # @raise [ArgumentError] it is longer than max_publish_bytes
      def broadcast(broadcasting, payload)
        unless ::Rondo::PubSub.serving?
          return @publisher.publish(self.class.shorten(broadcasting), payload)
        end
        return if ::Rondo.publish(self.class.channel(broadcasting), payload)

        raise ::Rondo::Rails::Cable::Undelivered, "the server has no room for a message to #{broadcasting}"
      rescue ::Rondo::Rails::Cable::NoServer => e
        @log.error { |times| "! Action Cable: #{e.message}: a broadcast went to nobody#{times}" }
      end

      # @param broadcasting [String]
      # @param callback [#call]
      # @param confirmed [#call, nil]
      # @return [void]
      def subscribe(broadcasting, callback, confirmed = nil)
        @map.add_subscriber(broadcasting, callback, confirmed)
      end

      # @param broadcasting [String]
      # @param callback [#call]
      # @return [void]
      def unsubscribe(broadcasting, callback)
        @map.remove_subscriber(broadcasting, callback)
      end

      # Nothing of the application's code is kept.
      # @return [void]
      def shutdown
        @map.clear
      end

      # A subscription of the server for each broadcasting, on application threads.
      class Map < SubscriberMap
        # @param broadcasting [String]
        # @param confirmed [#call, nil]
        # @return [void]
        def add_channel(broadcasting, confirmed)
          ::Rondo.subscribe(Rondo.channel(broadcasting)) { |_, message| broadcast(broadcasting, message) }
          super
        end

        # @param broadcasting [String]
        # @return [void]
        def remove_channel(broadcasting)
          ::Rondo.unsubscribe(Rondo.channel(broadcasting))
        end

        # @return [void]
        def clear
          names = @sync.synchronize { @subscribers.keys.tap { @subscribers.clear } }
          names.each { |name| remove_channel(name) }
        end
      end
    end
  end
end
