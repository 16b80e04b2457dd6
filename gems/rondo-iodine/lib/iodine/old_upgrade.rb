# frozen_string_literal: true

# `env["upgrade.websocket"]` of iodine 0.2: the handler has no client, but methods of its own for its connection.
# SPDX-License-Identifier: MIT

module Iodine
  # @api private
  module Base
    # The interface of before `rack.upgrade`.
    module OldUpgrade
      ASKED = "upgrade.websocket?"
      GIVEN = "upgrade.websocket"

      @handlers = {}.compare_by_identity
      @lock = Mutex.new

      class << self
        # @param given [Class, Object] a class is a handler for each connection
        # @return [Callbacks] a handler of today
        def adapt(given)
          handler = given.is_a?(Class) ? given.new : given
          give_methods(handler) unless handler.is_a?(Methods)
          Callbacks.new(handler)
        end

        # @return [void]
        def add(handler)
          @lock.synchronize { @handlers[handler] = true }
        end

        # @return [void]
        def remove(handler)
          @lock.synchronize { @handlers.delete(handler) }
        end

        # @return [Array<Object>] handlers of all such connections of this process
        def all
          @lock.synchronize { @handlers.keys }
        end

        private

        # The application's own methods go first, so the class gets these, as with iodine.
        def give_methods(handler)
          handler.instance_of?(Object) ? handler.extend(Methods) : handler.class.include(Methods)
        end
      end

      # What handlers are given.
      module Methods
        # @api private
        attr_accessor :iodine_connection

        # @param data [String]
        # @return [true, nil]
        def write(data)
          iodine_connection.write(data)
        end

        # @return [nil]
        def close
          iodine_connection.close
        end

        # @yieldparam other [Object] the handler of each other connection of this process
        # @return [self]
        def each
          (OldUpgrade.all - [self]).each { |other| yield other if other.iodine_connection.open? }
          self
        end

        # @return [Integer] such connections of this process
        def count
          OldUpgrade.all.size
        end

        # Calls the block soon, with the handler.
        # @return [Proc]
        def defer(&block)
          Iodine.run { block.call(self) }
        end
      end

      # From callbacks with a client to those without.
      class Callbacks
        # @param handler [Object]
        def initialize(handler)
          @handler = handler
        end

        def on_open(client)
          @handler.iodine_connection = client
          OldUpgrade.add(@handler)
          @handler.on_open if @handler.respond_to?(:on_open)
        end

        def on_message(_client, data)
          @handler.on_message(data) if @handler.respond_to?(:on_message)
        end

        def on_shutdown(_client)
          @handler.on_shutdown if @handler.respond_to?(:on_shutdown)
        end

        def on_close(_client)
          OldUpgrade.remove(@handler)
          @handler.on_close if @handler.respond_to?(:on_close)
        end
      end
    end
  end
end
