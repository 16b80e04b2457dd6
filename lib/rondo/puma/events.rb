# frozen_string_literal: true

# The methods of Puma::Events: for the launcher of plugins, and for Puma::Events itself without the gem puma.
# SPDX-License-Identifier: MIT

module Rondo
  # Blocks by the names of events.
  # @api private
  module PumaEvents
    # Today's name of an event, and Puma's name of before.
    NAMES = { after_booted: :on_booted, after_stopped: :on_stopped, before_restart: :on_restart }.freeze

    # @param name [Symbol] such as :state
    # @param object [#call, nil] or a block
    # @return [#call] what is called
    # @raise [ArgumentError] both, or none
    def register(name, object = nil, &block)
      raise ArgumentError, "specify either an object or a block, not both" if object && block
      raise ArgumentError, "an object or a block is needed" unless object || block

      hooks_for(name) << (object || block)
      object || block
    end

    # @param name [Symbol]
    # @return [Boolean] whether anybody wants to know of it
    def registered?(name)
      hooks_for(name).any?
    end

    # @param name [Symbol]
    # @param given [Array<Object>] what the blocks get
    # @return [void]
    # @raise what a block raises
    def fire(name, *given)
      hooks_for(name).each { |block| block.call(*given) }
    end

    NAMES.each do |name, old|
      define_method(name) { |&block| register(name, &block) }
      define_method(old) { |&block| register(name, &block) }
      define_method("fire_#{name}!") { fire(name) }
      define_method("fire_#{old}!") { fire(name) }
    end

    private

    def hooks_for(name)
      (@hooks ||= Hash.new { |hash, event| hash[event] = [] })[name]
    end
  end
end
