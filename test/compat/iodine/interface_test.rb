# frozen_string_literal: true

# The public interface of iodine 0.7.60: what each line of interface.txt returns or raises on Rondo is what it does on
# iodine (transcripts/interface.txt), but for the table below.
# SPDX-License-Identifier: MIT

require "test_helper"
require_relative "recorded"
require "open3"

class IodineInterfaceTest < Minitest::Test
  include Recorded

  LINES = File.join(__dir__, "interface.txt")

  # What Rondo says instead, and why.
  DIFFERENCES = {
    "Iodine.subscribe('a',5){}" => ["TypeError: wrong argument type Integer (expected Hash)", "iodine crashes"],
    "Iodine.publish(to: 'a', message: 'b')" => ["true", "iodine documents names of arguments, and does not read them"],
    'Iodine::JSON.parse("[12345678901234567890]")' => ["[12345678901234567890]", "iodine loses digits of large numbers"],
    'Iodine::Mustache.render(template: "{{n}} {{f}} {{t}} {{x}} {{nil}}", data: {n: 5, f: 1.5, t: true, x: false, nil: nil})' =>
      ['\"5 1&#46;5 true  \"', "iodine writes true twice"]
  }.freeze

  def test_each_line
    compare("interface", method(:run_lines)) do |theirs, ours|
      theirs, ours = [theirs, ours].map { |text| pairs(text) }
      assert_empty DIFFERENCES.keys - theirs.keys
      expected = theirs.merge(DIFFERENCES.transform_values(&:first))
      differ = ours.reject { |line, result| expected[line] == result }
      assert_empty(differ.map { |line, result| "#{line}\n  #{result}\n  not #{expected[line]}" })
      assert_equal theirs.size, ours.size
    end
  end

  private

  def pairs(text)
    text.force_encoding(Encoding::UTF_8).lines(chomp: true).to_h { |line| line.split(" -> ", 2) }
  end

  def run_lines(kind)
    folders = kind == :rondo ? %w[lib gems/rondo-iodine/lib].map { |folder| File.join(Contender::ROOT, folder) } : ["#{Contender::IODINE}/lib"]
    runner = File.join(__dir__, "interface_runner.rb")
    out, status = Open3.capture2(Contender::BLANK, RbConfig.ruby, "--disable-gems", "-W0", *folders.map { |folder| "-I#{folder}" },
                                 "-riodine", runner, LINES, chdir: Dir.tmpdir)
    assert status.success?
    out
  end
end
