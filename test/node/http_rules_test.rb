# frozen_string_literal: true

# The table of rules about bytes on the wire (test/conformance/rules), sent to the Node engine: whole, and with the
# default settings. http_rules_differences.tsv names the rules that Node's parser has in another way, and
# http_rules_uws_differences.tsv those of uWebSockets.js.
# SPDX-License-Identifier: MIT

require "test_helper"
require "conformance/runner"
require "support/node_process"

class NodeHttpRulesTest < Minitest::Test
  FILE = NodeProcess::UWS ? "http_rules_uws_differences.tsv" : "http_rules_differences.tsv"
  DIFFERENCES = File.readlines(File.join(__dir__, FILE), chomp: true)
                    .grep_v(/\A#|\A\z/).to_h { |line| line.split("\t", 2) }

  # Sends each case once. Where Node waits for more bytes, the answer would come after the deadline of a head.
  class Runner < ConformanceRunner
    def initialize
      super({})
      @tests = @tests.reject { |test| DIFFERENCES.fetch(test.id, "").start_with?("waits") }
    end

    private

    def serve(&block)
      NodeProcess.run(APP, &block)
    end

    def exchanges
      @tests.lazy.map { |test| exchange(Delivery.new(test, :whole), @server.url, [test.bytes]) }
    end
  end

  def test_the_rules
    failures = Runner.new.run
    unexpected = failures.except(*DIFFERENCES.keys).map { |id, lines| "#{id}: #{lines.first}" }
    assert_empty unexpected
    differing = DIFFERENCES.reject { |_, reason| reason.start_with?("waits") }.keys
    assert_empty differing - failures.keys, "these rules hold now"
  end
end
