# frozen_string_literal: true

# Iodine::JSON and texts that clients make long: what a text takes to be read is a small multiple of its bytes.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rbconfig"

class IodineJSONTest < Minitest::Test
  ROOT = File.expand_path("../../..", __dir__)
  BYTES = 2 << 20
  # Prints for each text how much the peak of the process has grown, in bytes.
  PROGRAM = <<~RUBY
    require "iodine"
    peak = -> { File.read("/proc/self/status")[/^VmHWM:\\s+(\\d+) kB/, 1].to_i * 1024 }
    texts = [%("\#{"a" * #{BYTES}}"), "[\#{" " * #{BYTES}}1]",
             "[\#{"#\\n" * (#{BYTES} / 2)}1]", "[/*\#{"*" * #{BYTES}}*/1]", "1.\#{"0" * #{BYTES}}"]
    texts.each do |text|
      File.write("/proc/self/clear_refs", "5") # the peak begins anew
      before = peak.call
      Iodine::JSON.parse(text)
      puts peak.call - before
    end
  RUBY

  def test_memory_of_long_texts
    skip "only Linux tells the peak of a process" unless File.writable?("/proc/self/clear_refs")
    lib = [File.join(ROOT, "lib"), File.join(ROOT, "gems/rondo-iodine/lib")].flat_map { |folder| ["-I", folder] }
    output, status = Open3.capture2e(RbConfig.ruby, *lib, "-e", PROGRAM)
    assert_predicate status, :success?, output
    growths = output.lines.map { |line| Integer(line, 10) }
    assert_equal 5, growths.size
    assert_operator growths.max, :<, 20 * BYTES, growths.inspect
  end
end
