# frozen_string_literal: true

# Loaded before every test: the gems of the Gemfile, minitest, and the stress of the collector when
# RONDO_TEST_GC asks for it, so that an unmarked VALUE shows at once:
#
#   full    a full mark at every allocation, moving what may be moved (some ms each)
#   minor   a minor collection at every allocation, a full one with compaction after every test
#   never   none for a tenth of a second, then Ruby looks for write barriers that are missing
# SPDX-License-Identifier: MIT

before = $LOAD_PATH.dup
require "bundler/setup" unless ENV["RONDO_TEST_GC"] == "full" # tools/run_gc has asked it
require "minitest/autorun"

# Programs that the tests start find the same gems. If each of these hundreds of processes loaded Bundler too, that
# would take more than half of their start time.
bundled = defined?(Bundler) ? Bundler.load.specs.reject { |spec| spec.name == "rondo" } : []
gems = [*($LOAD_PATH - before), *bundled.flat_map(&:full_require_paths)]
ENV["RUBYLIB"] = [*gems.uniq, ENV.fetch("RUBYLIB", nil)].compact.join(File::PATH_SEPARATOR)
ENV["RUBYOPT"] = ENV["RUBYOPT"].to_s.split.grep_v(/bundler/).join(" ")
# By the first of these Ruby 3.2 and newer load it. The second is Bundler 4's: another Gemfile has another lock file.
%w[BUNDLER_SETUP BUNDLE_LOCKFILE].each { |name| ENV.delete(name) }

# Servers of the tests write to pipes, and tests look for lines by their beginning. Tests of the time itself set this
# variable anew.
ENV["RONDO_LOG_TIME"] = "never"

# A shell that runs the tests in the background ignores these signals. The programs that the tests start would inherit
# that.
%w[INT QUIT].each { |name| trap(name, "DEFAULT") }

root = File.expand_path("..", __dir__)
[File.join(root, "test"), File.join(root, "lib")].each do |folder|
  $LOAD_PATH.unshift(folder) unless $LOAD_PATH.include?(folder)
end

require "support/time_limit"
TimeLimit.begin
Minitest::Test.prepend(TimeLimit::Watched)

if ENV["RONDO_TEST_XOR"]&.start_with?("http2")
  require "support/http2_exclusions"
  HTTP2Exclusions.begin
end

# Old objects get young ones, and no collection makes those old. Where a write barrier is missing, Ruby ends the process.
module CheckedBarriers
  def self.begin
    Thread.new do
      loop do
        GC.enable
        4.times { GC.start } # all that is there is old now
        GC.disable
        sleep rand(0.03..0.15)
        GC.verify_internal_consistency
      end
    end
  end
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

case ENV.fetch("RONDO_TEST_GC", nil)
when "never" then CheckedBarriers.begin
when String then Minitest::Test.prepend(StressedCollection)
end
