# frozen_string_literal: true

# Names of before, each with the warning that iodine gives.
# SPDX-License-Identifier: MIT

module Iodine
  # What each old name became.
  # @api private
  OLD_STATES = { before_fork: :before_fork, after_fork: :after_fork, after_fork_in_worker: :enter_child,
                 after_fork_in_master: :enter_master, on_shutdown: :on_finish }.freeze
  private_constant :OLD_STATES

  class << self
    # @deprecated {listen} with `service: :http`
    # @param args [Hash] as {listen} takes them
    # @return [Object] the handler
    # @raise [ArgumentError, TypeError, RuntimeError]
    def listen2http(args, &block)
      warn "Iodine.listen2http is deprecated, use Iodine.listen(service: :http)."
      args[:service] = :http
      listen(args, &block)
    end

    # @!method before_fork(&block)
    #   @deprecated {on_state} with `:before_fork`
    #   @return [Proc] the block
    # @!method after_fork(&block)
    #   @deprecated {on_state} with `:after_fork`
    #   @return [Proc] the block
    # @!method after_fork_in_worker(&block)
    #   @deprecated {on_state} with `:enter_child`
    #   @return [Proc] the block
    # @!method after_fork_in_master(&block)
    #   @deprecated {on_state} with `:enter_master`
    #   @return [Proc] the block
    # @!method on_shutdown(&block)
    #   @deprecated {on_state} with `:on_finish`
    #   @return [Proc] the block
    OLD_STATES.each do |old, state|
      define_method(old) do |&block|
        warn "Iodine.#{old} is deprecated, use Iodine.on_state(:#{state})."
        on_state(state, &block)
      end
    end
  end

  module PubSub
    # @deprecated {detach}
    # @param engine [Engine]
    # @return [Engine]
    # @raise [TypeError]
    def self.dettach(engine)
      warn "Iodine::PubSub.dettach is deprecated (was a typo), use Iodine::PubSub.detach(engine)."
      detach(engine)
    end
  end
end
