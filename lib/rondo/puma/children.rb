# frozen_string_literal: true

# The processes that plugins have started, which end with their generation. On Linux alone: elsewhere they have to see
# by themselves that their parent has gone, as the plugins of solid_queue and Tailwind do.
# SPDX-License-Identifier: MIT

require "socket"

module Rondo
  # Children of this process.
  # @api private
  module Children
    STEP = 0.02

    module_function

    # @return [Array<Integer>] process ids
    def pids
      Dir.glob("/proc/self/task/*/children").flat_map { |path| File.read(path).split.map(&:to_i) }
    rescue SystemCallError
      []
    end

    # @return [Array<String>] sockets of this process that listen
    def listening
      Dir.glob("/proc/self/fd/*").select { |path| listens?(path) }
    end

    # Asks them to end, and waits for them.
    # @param pids [Array<Integer>]
    # @param seconds [Numeric] after which those that are left are killed
    # @return [void]
    def end_all(pids, seconds)
      pids.each { |pid| signal("TERM", pid) }
      limit = now + seconds
      until (pids = pids.reject { |pid| ended?(pid) }).empty?
        return pids.each { |pid| signal("KILL", pid) } if now > limit

        sleep STEP
      end
    end

    def listens?(path)
      return false unless File.readlink(path).start_with?("socket:")

      socket = Socket.for_fd(Integer(File.basename(path)))
      socket.autoclose = false
      socket.getsockopt(:SOCKET, :ACCEPTCONN).bool
    rescue SystemCallError
      false # it was closed meanwhile
    end
    private_class_method :listens?

    def ended?(pid)
      !Process.wait(pid, Process::WNOHANG).nil?
    rescue Errno::ECHILD
      true
    end
    private_class_method :ended?

    def signal(name, pid)
      Process.kill(name, pid)
    rescue Errno::ESRCH
      nil
    end
    private_class_method :signal

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
    private_class_method :now
  end
end
