# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The static folder over real sockets: one test method per case of files_rules.rb, whole, byte by byte
# and cut in two. CONFORMANCE_ONLY='^range_' delivers only the cases whose id matches.

require "minitest/autorun"
require_relative "files_runner"

class TestFiles < Minitest::Test
  FilesRunner.cases.each do |test|
    define_method("test_#{test.id}_#{test.settings}_#{test.title.gsub(/\W+/, "_")}") do
      failures = FilesRunner.failures(test)
      message = "#{test.bytes[0, 300].inspect} (#{test.settings})\n" \
                "#{failures.size} deliveries failed:\n  #{failures.first(5).join("\n  ")}"
      flunk message if failures.any?
      pass
    end
  end

  Minitest.after_run { puts "#{FilesRunner.cases.size} cases of files, #{FilesRunner.deliveries} deliveries" }
end
