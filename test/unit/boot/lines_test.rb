# frozen_string_literal: true

# What the lines at boot say of fibers; the others are in test/integration/cli_test.rb.
# SPDX-License-Identifier: MIT

require "test_helper"
require "stringio"
require "rondo/boot/lines"
require "rondo/config/configuration"
require "rondo/config/worker_count"

class BootLinesTest < Minitest::Test
  def lines(**values)
    settings = Rondo::Settings::Resolved.new(values.transform_values { |value| [value, "test"] })
    out = StringIO.new
    boot = Rondo::BootLines.new(settings, Rondo::Configuration.new, Rondo::Logger.new(io: out))
    %i[single cluster].map do |mode|
      out.reopen(+"")
      boot.public_send(mode, Rondo::WorkerCount.new(settings))
      out.string
    end
  end

  def test_fibers_and_their_stacks
    lines(fibers: 300, slow_fiber_ms: 100).each do |text|
      assert_match(/^\*       Fibers: 300, each with a stack of \d+k for Ruby and \d+k for C \(test\)$/, text)
      assert_match(/^\*      Setting: slow_fiber_ms 100 \(test\)$/, text)
      refute_match(/no effect|Setting: fibers/, text)
    end
  end

  def test_no_fibers
    lines.each { |text| refute_match(/fiber/i, text) }
  end

  def test_what_needs_fibers
    lines(fiber_pool: 1, slow_fiber_ms: 0).each do |text|
      assert_match(/^! fiber_pool \(test\): no effect without fibers$/, text)
      refute_match(/! slow_fiber_ms/, text)
    end
  end
end
