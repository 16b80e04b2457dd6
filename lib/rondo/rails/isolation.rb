# frozen_string_literal: true

# What Rails keeps for the request that runs, taken along by an action that outlives it on its thread. Rails copies only
# the outermost Hash of it: what is in there, such as the attributes of Current, would be reset or become another
# request's while the action still runs.
# SPDX-License-Identifier: MIT

module Rondo
  module Rails
    # A copy of the state of a request, for one other thread.
    # @api private
    class Isolation
      # Objects that a request changes; each is copied with the Arrays and Hashes in it.
      COPIED = %w[ActiveSupport::TaggedLogging::TagStack ActiveSupport::Cache::Strategy::LocalCache::LocalCacheRegistry
                  ActiveRecord::Scoping::ScopeRegistry].freeze

      # Copies what the current thread or fiber has.
      # @param controller [Class] may name what is to be left out (Rails 8.1)
      def initialize(controller)
        left_out = controller.respond_to?(:live_streaming_excluded_keys) ? controller.live_streaming_excluded_keys : nil
        state = ::ActiveSupport::IsolatedExecutionState.context.active_support_execution_state || {}
        @state = state.except(*Array(left_out)).transform_values { |value| copy(value) }
        @locals = Thread.current.keys.to_h { |name| [name, contents(Thread.current[name])] }
      end

      # Makes it the state of the current thread.
      # @return [void]
      def become_current
        ::ActiveSupport::IsolatedExecutionState.context.active_support_execution_state = @state
        @locals.each { |name, value| Thread.current[name] = value }
      end

      private

      def copy(value)
        case value
        when Hash then value.dup.transform_values! { |inner| copy(inner) }
        when ::ActiveSupport::CurrentAttributes then with_contents(value)
        else COPIED.include?(value.class.name) ? with_contents(value) : contents(value)
        end
      end

      def with_contents(object)
        object.dup.tap do |twin|
          twin.instance_variables.each do |name|
            twin.instance_variable_set(name, contents(twin.instance_variable_get(name)))
          end
        end
      end

      def contents(value)
        value.is_a?(Hash) || value.is_a?(Array) ? value.dup : value
      end
    end
  end
end
