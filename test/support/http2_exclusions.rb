# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# Which tests cannot pass when their requests go over HTTP/2 (tools/run_http2): http2_exclusions.tsv has a line for each,
# its name and a reason; with "tls:" in front it is for ports with TLS only. They are left out; or, with
# RONDO_TEST_EXCLUDED, only they run, and each must fail.

module HTTP2Exclusions
  OTHERS = ENV["RONDO_TEST_XOR"] == "http2-tls" ? "#" : /#|tls:/
  REASONS = File.readlines(File.join(__dir__, "http2_exclusions.tsv"), chomp: true).reject { |line| line.start_with?(OTHERS) }
                .to_h { |line| line.delete_prefix("tls:").split("\t", 2) }.freeze
  ONLY = ENV.key?("RONDO_TEST_EXCLUDED")

  def runnable_methods
    super.select { |name| REASONS.key?("#{self}##{name}") == ONLY }
  end

  # Turns the results of tests that must fail.
  module Reversed
    def run
      result = super
      wrong = %(it passes, and http2_exclusions.tsv says "#{REASONS["#{self.class}##{name}"]}") if result.passed?
      wrong = "it skips itself: it needs no line in http2_exclusions.tsv" if result.skipped?
      result.failures = wrong ? [Minitest::Assertion.new(wrong)] : []
      result
    end
  end

  def self.begin
    Minitest::Test.singleton_class.prepend(self)
    Minitest::Test.prepend(Reversed) if ONLY
  end
end
