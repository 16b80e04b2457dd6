# frozen_string_literal: true

# The tasks that other people rely on exist, and so do those that CONTRIBUTING names.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"

class RakeTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  TASKS = %w[
    bench compile conformance docs format fuzz gem generate lint replay site test test:apps test:asan
    test:conformance test:core test:gc test:integration test:project
  ].freeze

  def test_the_tasks_are_there_and_described
    output, status = Open3.capture2e("bundle", "exec", "rake", "-T", chdir: ROOT)
    assert status.success?, output
    assert_empty(TASKS - output.scan(/^rake ([\w:]+)/).flatten)
  end

  def test_rake_alone_compiles_lints_and_runs_the_unit_tests
    output, = Open3.capture2e("bundle", "exec", "rake", "-P", chdir: ROOT)
    assert_equal %w[compile lint test], output[/^rake default\n((?:    .*\n)+)/, 1].split
  end

  def test_tasks_named_in_contributing_exist
    output, = Open3.capture2e("bundle", "exec", "rake", "-P", chdir: ROOT)
    named = File.read(File.join(ROOT, "CONTRIBUTING.md")).scan(/rake "?([a-z:]+)/).flatten
    assert_empty(named.uniq - output.scan(/^rake ([\w:]+)/).flatten)
  end
end
