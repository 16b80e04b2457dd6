# frozen_string_literal: true

# A foreign server that a test starts on a free port in its own folder. The test can freeze it, kill it and start it
# again at the same place. The subclasses below name the command.
# SPDX-License-Identifier: MIT

require "fileutils"
require "socket"
require "tmpdir"
require_relative "halted"
require_relative "held_port"

class ChildServer
  DEADLINE = 60

  @running = []
  class << self
    # @return [Array<ChildServer>] the servers of all classes below
    def running
      ChildServer.instance_variable_get(:@running)
    end
  end
  Minitest.after_run { running.dup.each(&:close) } # in this process, not in one that a test forks

  attr_reader :pid, :folder

  def initialize
    @folder = Dir.mktmpdir("rondo-child")
    @held = HeldPort.new
    yield if block_given?
    ChildServer.running << self
    start
  end

  # @return [Integer]
  def port
    @held.number
  end

  def start
    @pid = Process.spawn(*command, in: File::NULL, out: log_path, err: %i[child out], pgroup: true)
    @waiter = Process.detach(@pid)
    wait_until_listening
  end

  # Ends the server like a crash.
  def kill
    signal("KILL")
    @waiter.join
  end

  # @return [Boolean]
  def alive?
    @waiter.alive?
  end

  def freeze_process
    Halted.halt(@pid)
  end

  def thaw
    signal("CONT")
  end

  def signal(name)
    Process.kill(name, @pid)
  rescue Errno::ESRCH
    nil
  end

  def close
    kill if @waiter.alive?
    @held.close
    ChildServer.running.delete(self)
    FileUtils.rm_rf(@folder)
  end

  private

  def log_path
    File.join(@folder, "log")
  end

  def connect
    TCPSocket.new("127.0.0.1", port)
  end

  def wait_until_listening
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + DEADLINE
    until listening?
      late = Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      raise "#{command.first} does not run: #{File.read(log_path)}" if late || !@waiter.alive?

      IO.select(nil, nil, nil, 0.005)
    end
  end

  def listening?
    connect.close
    true
  rescue SystemCallError
    false
  end
end
