# frozen_string_literal: true

# Takes the place of scheduler.rb in Ruby's own tests of fibers (tools/run_fiber_tests): the names that they use, for
# Rondo's scheduler. What breaks a scheduler on purpose is here as it is there.
# SPDX-License-Identifier: MIT

require "socket"
require "io/nonblock"
require "rondo"
Warning[:experimental] = false

class Scheduler < Rondo::Scheduler
  # The tests ask for the size of it.
  def waiting
    Array.new(super)
  end
end

class IOBufferScheduler < Scheduler
end

# Raises where it must not.
class BrokenUnblockScheduler < Scheduler
  def unblock(blocker, fiber)
    super

    raise "Broken unblock!"
  end
end

# Sleeps where it must not.
class SleepingUnblockScheduler < Scheduler
  def unblock(blocker, fiber)
    super

    sleep(0.1)
  end
end

# Blocks where it must not.
class SleepingBlockingScheduler < Scheduler
  def kernel_sleep(duration = nil)
    Fiber.blocking { sleep 0.0001 }

    block(:sleep, duration)

    true
  end
end
