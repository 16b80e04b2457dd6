# frozen_string_literal: true

# Loaded before every test: the gems of the Gemfile, minitest, and the stress of the collector when
# RONDO_TEST_GC asks for it, so that an unmarked VALUE shows at once:
#
#   full    a full mark at every allocation, moving what may be moved (some ms each)
#   minor   a minor collection at every allocation, a full one with compaction after every test
# SPDX-License-Identifier: MIT

before = $LOAD_PATH.dup
require "bundler/setup" unless ENV["RONDO_TEST_GC"] == "full" # tools/run_gc has asked it
require "minitest/autorun"

# What the tests start finds the same gems. To load Bundler, too, in each of these hundreds of processes would take
# more than half of the time until one serves.
ENV["RUBYLIB"] = [*($LOAD_PATH - before), ENV.fetch("RUBYLIB", nil)].compact.join(File::PATH_SEPARATOR)
ENV["RUBYOPT"] = ENV["RUBYOPT"].to_s.split.grep_v(/bundler/).join(" ")

# A shell that runs the tests in the background has them ignore these, and so would whatever they start.
%w[INT QUIT].each { |name| trap(name, "DEFAULT") }

root = File.expand_path("..", __dir__)
[File.join(root, "test"), File.join(root, "lib")].each do |folder|
  $LOAD_PATH.unshift(folder) unless $LOAD_PATH.include?(folder)
end

# Collects while a test runs.
module StressedCollection
  MINOR_ONLY = 1 # a bit of GC.stress=: no major collections
  STRESS = { "full" => true, "minor" => MINOR_ONLY }.freeze

  def before_setup
    super
    GC.auto_compact = true if GC.respond_to?(:auto_compact=)
    GC.stress = STRESS.fetch(ENV.fetch("RONDO_TEST_GC"))
  end

  def after_teardown
    GC.stress = false
    GC.compact if GC.respond_to?(:compact)
    super
  end
end

Minitest::Test.prepend(StressedCollection) if ENV["RONDO_TEST_GC"]
