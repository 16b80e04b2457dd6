# frozen_string_literal: true

# The public interface of iodine 0.7.60: what each line of interface.txt returns or raises on Rondo is what it does on
# iodine (transcripts/interface.txt), but for the table below.
# SPDX-License-Identifier: MIT

require "test_helper"
require_relative "contender"
require "open3"

class IodineInterfaceTest < Minitest::Test
  KIND = ENV.fetch("RONDO_COMPAT", "rondo").to_sym
  LINES = File.join(__dir__, "interface.txt")
  RECORDED = File.join(__dir__, "transcripts/interface.txt")
  NO_SERVER = "nobody gets what is published before the start, and Rondo says so"
  NAMES = "iodine has the formats of these two names the wrong way round"

  # What Rondo says instead, and why.
  DIFFERENCES = {
    "Iodine.send(:verbosity=,4)" => ["4", "an assignment answers its value"],
    "Iodine.subscribe('a',5){}" => ["TypeError: wrong argument type Integer (expected Hash)", "iodine crashes"],
    "Iodine.publish('a','b')" => ["false", NO_SERVER], "Iodine.publish('','b')" => ["false", NO_SERVER],
    "Iodine.publish('a','b',false)" => ["false", NO_SERVER],
    "Iodine.publish('a','b',Iodine::PubSub::PROCESS)" => ["false", NO_SERVER],
    "Iodine.publish(to: 'a', message: 'b')" => ["false", "iodine documents names of arguments, and does not read them"],
    "c=Iodine::Connection.new;[c.write('a'),c.close,c.open?,c.pending,c.protocol,c.timeout,(c.timeout=5),c.env,c.handler,(c.handler=5)," \
    "c.pubsub?,c.subscribe('a'),c.unsubscribe('a'),c.publish('a','b')]" =>
      ["[nil, nil, false, -1, nil, nil, 5, nil, nil, 5, 0, nil, nil, false]", NO_SERVER],
    "Iodine::Rack::Utils.rfc2109(784111777)" => ['\"Sun, 06-Nov-1994 08:49:37 GMT\"', NAMES],
    "Iodine::Rack::Utils.rfc2822(784111777)" => ['\"Sun, 06 Nov 1994 08:49:37 -0000\"', NAMES],
    "Iodine::Base::MonkeyPatch::RackUtils.rfc2109(784111777)" => ['\"Sun, 06-Nov-1994 08:49:37 GMT\"', NAMES],
    'Iodine::JSON.parse("[12345678901234567890]")' => ["[12345678901234567890]", "iodine loses digits of large numbers"],
    'Iodine::JSON.parse("[-]")' => ["EncodingError: Malformed JSON format.", "a sign is no number"],
    'Iodine::Mustache.render(template: "{{n}} {{f}} {{t}} {{x}} {{nil}}", data: {n: 5, f: 1.5, t: true, x: false, nil: nil})' =>
      ['\"5 1&#46;5 true  \"', "iodine writes true twice"]
  }.freeze

  def test_each_line
    skip "iodine 0.7.60 is not installed (RONDO_TEST_IODINE)" if KIND != :rondo && !Contender::IODINE
    found = run_lines
    return File.binwrite(RECORDED, found) if KIND == :record
    return assert_equal(File.binread(RECORDED), found) if KIND == :iodine

    theirs = pairs(File.binread(RECORDED))
    assert_empty DIFFERENCES.keys - theirs.keys
    expected = theirs.merge(DIFFERENCES.transform_values(&:first))
    differ = pairs(found).reject { |line, result| expected[line] == result }
    assert_empty(differ.map { |line, result| "#{line}\n  #{result}\n  not #{expected[line]}" })
    assert_equal theirs.size, pairs(found).size
  end

  private

  def pairs(text)
    text.force_encoding(Encoding::UTF_8).lines(chomp: true).to_h { |line| line.split(" -> ", 2) }
  end

  def run_lines
    folders = KIND == :rondo ? %w[lib gems/rondo-iodine/lib].map { |folder| File.join(Contender::ROOT, folder) } : ["#{Contender::IODINE}/lib"]
    runner = File.join(__dir__, "interface_runner.rb")
    out, status = Open3.capture2(Contender::BLANK, RbConfig.ruby, "--disable-gems", "-W0", *folders.map { |folder| "-I#{folder}" },
                                 "-riodine", runner, LINES, chdir: Dir.tmpdir)
    assert status.success?
    out
  end
end
