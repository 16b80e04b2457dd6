# frozen_string_literal: true

# For an engine of pub/sub that does not come back from being told of a subscription until its gate is closed.
# SPDX-License-Identifier: MIT
module StuckEngine
  # @return [Thread::Queue] of the channels that it is being told of
  attr_reader :began
  # @return [Thread::Queue]
  attr_reader :gate

  def initialize
    super
    @began = Thread::Queue.new
    @gate = Thread::Queue.new
  end

  def subscribe(channel, is_pattern)
    super
    @began << channel
    @gate.pop
  end
end
