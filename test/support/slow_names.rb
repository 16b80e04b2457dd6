# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# A system in which names below .slow.test have no answer: slow_names.c is preloaded into a server.

require "fileutils"
require "rbconfig"
require "tmpdir"

class SlowNames
  class Failure < StandardError; end

  SOURCE = File.expand_path("slow_names.c", __dir__)

  # Yields such a system.
  def self.open
    Dir.mktmpdir("rondo-slow-names") { |directory| yield new(directory) }
  end

  def initialize(directory)
    @seen = File.join(directory, "seen")
    @library = File.join(directory, "slow_names.so")
    FileUtils.touch(@seen)
    command = [RbConfig::CONFIG["CC"].split.first, "-shared", "-fPIC", "-O1", "-w", "-o", @library, SOURCE, "-ldl"]
    raise Failure, "cannot compile #{SOURCE}" unless system(*command)
  end

  # @return [Hash{String => String}] environment of a process in it
  def env
    preload = [ENV.fetch("LD_PRELOAD", nil), @library].compact.join(":") # a sanitizer's comes first
    { "LD_PRELOAD" => preload, "SLOW_NAMES_SEEN" => @seen }
  end

  # @return [Integer] questions without an answer
  def asked
    File.size(@seen)
  end
end
