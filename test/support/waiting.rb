# frozen_string_literal: true

# Waiting for what another thread of the tests' process does.
# SPDX-License-Identifier: MIT

module Waiting
  PATIENCE = 60

  # @yieldreturn [Boolean] whether it has happened
  def wait_until
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until yield
      flunk "it did not happen" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      Thread.pass
    end
  end
end
