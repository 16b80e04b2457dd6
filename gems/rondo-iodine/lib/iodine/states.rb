# frozen_string_literal: true

# Blocks for the states of the server and its processes. With workers, what iodine's root does before and after a fork
# happens in the mold, which forks the workers; running.rb says when each state is reached.
# SPDX-License-Identifier: MIT

module Iodine
  # @api private
  module Base
    # In the order of a life.
    STATES = %i[pre_start before_fork after_fork enter_child enter_master on_start on_parent_crush on_child_crush
                start_shutdown on_finish].freeze
    # The last one that was added is called first.
    BACKWARDS = %i[on_parent_crush on_child_crush start_shutdown on_finish].freeze

    @states = STATES.to_h { |name| [name, []] }

    class << self
      # @param name [Symbol]
      # @return [Array<Proc>, nil] in the order in which they were added
      def state(name)
        @states[name]
      end

      # Calls the blocks of a state that is reached.
      # @param name [Symbol]
      # @return [void]
      def reach(name)
        blocks = @states.fetch(name)
        (BACKWARDS.include?(name) ? blocks.reverse : blocks.dup).each { |block| guard { block.call } }
      end
    end
  end

  # Calls the block whenever the state is reached.
  # @param event [Symbol] one of {Base::STATES}
  # @return [Proc] the block
  # @raise [LocalJumpError, TypeError]
  def self.on_state(event, &block)
    Base.need_block(block)
    Base.check(event, Symbol)
    blocks = Base.state(event) or raise TypeError, "unknown event in Iodine.on_state"
    blocks << block
    block
  end
end
