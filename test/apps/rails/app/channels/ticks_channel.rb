# frozen_string_literal: true

# Tells its clients the time, so to speak.
# SPDX-License-Identifier: MIT

class TicksChannel < ApplicationCable::Channel
  periodically :tick, every: 0.05

  def subscribed = @ticks = 0
  def stop = stop_periodic_timers

  private

  def tick = transmit({ tick: @ticks += 1 })
end
