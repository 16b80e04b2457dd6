# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# A folder on a disk that stops answering when the test says so, and answers again when the test says so: slow_disk.c is
# preloaded into the server. No clock is involved. The tests see what the server does while a call has not returned.

require "fileutils"
require "rbconfig"
require "tmpdir"

class SlowDisk
  class Failure < StandardError; end

  DEADLINE = 30
  SOURCE = File.expand_path("slow_disk.c", __dir__)

  attr_reader :folder

  # Yields a disk whose folder is empty.
  def self.open
    Dir.mktmpdir("rondo-slow-disk") { |directory| yield new(directory) }
  end

  def initialize(directory)
    @folder = File.join(directory, "folder")
    @gate = File.new(File.join(directory, "gate"), "w")
    @seen = File.join(directory, "seen")
    @library = File.join(directory, "slow_disk.so")
    Dir.mkdir(@folder)
    FileUtils.touch(@seen)
    compile
  end

  # @return [Hash{String => String}] environment of a process that has this disk
  def env
    preload = [ENV.fetch("LD_PRELOAD", nil), @library].compact.join(":") # a sanitizer's comes first
    { "LD_PRELOAD" => preload, "SLOW_DISK_FOLDER" => @folder, "SLOW_DISK_GATE" => @gate.path,
      "SLOW_DISK_SEEN" => @seen }
  end

  CALLS = %w[open openat2 write pread preadv2 sendfile close connect].freeze

  # These calls do not return until the block is over.
  def hold(*names)
    File.write(@seen, "")
    File.write(@gate.path, (names.empty? ? CALLS : names).map { |name| "<#{name}>" }.join)
    @gate.flock(File::LOCK_EX)
    yield
  ensure
    @gate.flock(File::LOCK_UN)
  end

  # Waits until a call with that name hangs.
  def wait_for(name, deadline: DEADLINE)
    limit = now + deadline
    until File.read(@seen).include?("<#{name}>")
      raise Failure, "no #{name} hangs, but: #{File.read(@seen)}" if now > limit
      sleep 0.01
    end
  end

  private

  def compile
    command = [RbConfig::CONFIG["CC"].split.first, "-shared", "-fPIC", "-O1", "-w", "-o", @library, SOURCE, "-ldl"]
    raise Failure, "cannot compile #{SOURCE}" unless system(*command)
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
