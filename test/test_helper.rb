# frozen_string_literal: true

# Loaded before every test: the gems of the Gemfile, minitest, and (when RONDO_TEST_GC=stress) a
# garbage collection at every chance while a test runs, so that an unmarked VALUE shows at once.
# SPDX-License-Identifier: MIT

require "bundler/setup"
require "minitest/autorun"

root = File.expand_path("..", __dir__)
[File.join(root, "test"), File.join(root, "lib")].each do |folder|
  $LOAD_PATH.unshift(folder) unless $LOAD_PATH.include?(folder)
end

# Collects at every allocation while a test runs, and moves what may be moved at every full mark.
module StressedCollection
  def before_setup
    super
    GC.auto_compact = true if GC.respond_to?(:auto_compact=)
    GC.stress = true
  end

  def after_teardown
    GC.stress = false
    GC.compact if GC.respond_to?(:compact)
    super
  end
end

Minitest::Test.prepend(StressedCollection) if ENV["RONDO_TEST_GC"] == "stress"
