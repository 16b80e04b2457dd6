# frozen_string_literal: true

# Each rule of rules.rb is a test, in all ways in which its bytes can come.
# SPDX-License-Identifier: MIT

require "test_helper"
require "tmpdir"
require "timeout"
require "fileutils"
require_relative "rules_runner"

class TLSRulesTest < Minitest::Test
  class << self
    def runner
      @runner ||= TLSRulesRunner.new(@folder = File.realpath(Dir.mktmpdir("rondo-tls"))).tap do
        Minitest.after_run { finish }
      end
    end

    def finish
      @runner.stop
      FileUtils.rm_rf(@folder)
    end
  end

  TLSRules.rules.each do |rule|
    define_method("test_#{rule.id}_#{rule.title.gsub(/\W+/, "_")}") do
      assert_empty self.class.runner.failures(rule)
    end
  end
end
