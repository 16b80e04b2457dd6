# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# One test method per case of the table, so that a failure has a name.
# CONFORMANCE_ONLY='^2[5-9]' delivers only the cases whose id matches.

require "minitest/autorun"
require_relative "runner"

class TestHttpRules < Minitest::Test
  ConformanceRunner.cases.each do |test|
    define_method("test_#{test.id}_#{test.title.gsub(/\W+/, "_")}") do
      skip "needs a client that sends a PROXY header before the handshake, and the XOR proxy sends none" if XorProxy.on? && test.settings.key?(:proxy_protocol_from)
      failures = ConformanceRunner.failures(test)
      message = "#{test.bytes[0, 300].inspect} #{test.settings unless test.settings.empty?}\n" \
                "#{failures.size} deliveries failed:\n  #{failures.first(5).join("\n  ")}"
      flunk message if failures.any?
      pass
    end
  end

  Minitest.after_run { puts "#{ConformanceRunner.cases.size} cases, #{ConformanceRunner.deliveries} deliveries" }
end
