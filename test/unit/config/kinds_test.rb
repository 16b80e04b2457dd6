# frozen_string_literal: true

# How each kind of setting reads a value from the configuration file, the command line and a variable.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/config/options"

class KindsTest < Minitest::Test
  KINDS = Rondo::Settings::KINDS
  Refused = Rondo::Settings::Kind::Refused

  def row(**given)
    Rondo::Settings::Row.new(default: 0, **given)
  end

  def refusal(&block)
    assert_raises(Refused, &block).message
  end

  # Kind, object of the file => value; then words of the command line, then texts of variables.
  VALUES = { [:seconds, "1.5"] => 1.5, [:seconds, 2.0] => 2, [:seconds, "500ms"] => 0.5, [:seconds, "5m"] => 300, [:seconds, "1h"] => 3600, [:count, "7"] => 7, [:size, "1k"] => 1024,
             [:text, "x"] => "x", [:addresses, "::1"] => ["::1"], [:path, "a"] => "a", [:switch, "no"] => "no" }.freeze
  WORDS = { [:port, "80"] => 80, [:workers, "auto"] => "auto", [:workers, "2"] => 2, [:switch, true] => true,
            [:folder, "/a/../b"] => "/b", [:seconds, "2"] => 2, [:paths, "a"] => ["a"] }.freeze
  TEXTS = { [:port, "80"] => 80, [:workers, "auto"] => "auto", [:switch, "yes"] => true, [:switch, "0"] => false,
            [:size, "2m"] => 2 << 20, [:addresses, "a"] => ["a"], [:any, "x"] => "x" }.freeze

  def test_what_is_read
    { value: VALUES, word: WORDS, variable: TEXTS }.each do |source, table|
      table.each do |(kind, given), value|
        assert_equal [value], [KINDS.fetch(kind).public_send(source, row, given)], "#{kind} #{given.inspect}"
      end
    end
  end

  def test_what_repeats_adds_up
    assert_equal %w[a b], KINDS[:addresses].word(row, "b", %w[a])
    assert_equal 81, KINDS[:port].word(row, "81", 80)
  end

  def test_choices_have_any_spelling_and_one_value
    formats = row(choices: %i[common json])
    assert_equal %i[json json], ["json", :json].map { |value| KINDS[:choice].value(formats, value) }
    assert_equal "must be common or json, not nil", refusal { KINDS[:choice].value(formats, nil) }
    assert_equal 'must be common or json, not "xml"', refusal { KINDS[:choice].word(formats, "xml") }
  end

  def test_nothing_is_a_value_where_it_is_the_default
    assert_nil KINDS[:path].value(row(default: nil), nil)
    assert_equal "must be a path, not nil", refusal { KINDS[:path].value(row(default: "x"), nil) }
  end

  def test_refusals
    ["1e999", "NaN", "5d", "m", "-1s", nil].each { |value| assert_match(/must be a number/, refusal { KINDS[:seconds].value(row, value) }) }
    assert_equal "must not be negative", refusal { KINDS[:seconds].value(row, -1) }
    assert_equal "must be #{Rondo::Settings::TIME_FORMS}, not :soon", refusal { KINDS[:seconds].value(row, :soon) }
    assert_equal "101 is above 100 percent", refusal { KINDS[:count].value(row(most: 100, unit: "percent"), 101) }
    assert_equal 'must be a number up to 65535, not "70000"', refusal { KINDS[:port].word(row, "70000") }
    assert_equal 'must be a number, not "auto"', refusal { KINDS[:port].variable(row, "auto") }
    assert_equal 'must be true or false, not "2"', refusal { KINDS[:switch].variable(row, "2") }
    assert_equal 'must be a number or auto, not "-1"', refusal { KINDS[:workers].word(row, "-1") }
  end
end
