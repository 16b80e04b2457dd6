# frozen_string_literal: true

# For a pub/sub engine whose subscribe call does not return until the gate is closed.
# SPDX-License-Identifier: MIT
module StuckEngine
  # @return [Thread::Queue] the channels of the calls that are running
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
