# frozen_string_literal: true

# What tests of attacks share: another client, which has to be answered all the time, and what the processes of a
# server hold.
# SPDX-License-Identifier: MIT

require "timeout"

module Besieged
  # Another client: it asks all the time, on one connection after the other.
  class Bystander
    attr_reader :answers

    def initialize(&ask)
      @answers = 0
      @thread = Thread.new do
        until @over
          ask.call
          @answers += 1
        end
      end
      @thread.report_on_exception = false
    end

    # Waits for some more answers.
    # @param patience [Integer] seconds
    def serve(more, patience)
      wanted = @answers + more
      Timeout.timeout(patience) { Thread.pass while @thread.alive? && @answers < wanted && sleep(0.01) }
      @thread.join unless @thread.alive?
    end

    def stop
      @over = true
      @thread.join
    end
  end

  def processes(server)
    children = File.read("/proc/#{server.pid}/task/#{server.pid}/children").split
    [server.pid, *children, *children.flat_map { |pid| File.read("/proc/#{pid}/task/#{pid}/children").split }].map(&:to_i)
  end

  # A descriptor may be closed meanwhile.
  def socket?(path)
    File.readlink(path).start_with?("socket:")
  rescue Errno::ENOENT
    false
  end

  def sockets(pids)
    pids.sum { |pid| Dir["/proc/#{pid}/fd/*"].count { |path| socket?(path) } }
  end

  def highest_kib(pids)
    pids.sum { |pid| File.read("/proc/#{pid}/status")[/^VmHWM:\s+(\d+)/, 1].to_i }
  end

  def forget_highest(pids)
    pids.each { |pid| File.write("/proc/#{pid}/clear_refs", "5") }
  end

  def wait_until(what)
    Timeout.timeout(self.class::PATIENCE) { sleep 0.02 until yield }
  rescue Timeout::Error
    flunk "never: #{what}"
  end
end
