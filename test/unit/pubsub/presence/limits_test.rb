# frozen_string_literal: true

# What Presence takes from applications: names, info, limits; and what it says where no server runs.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/presence"

class PresenceLimitsTest < Minitest::Test
  P = Rondo::Presence
  A = P::Arguments

  def test_names_are_utf8_of_some_bytes
    assert_equal "Grüße", A.id("Grüße".b)
    assert_equal Encoding::UTF_8, A.id("a".b).encoding
    assert_predicate A.room("a"), :frozen?
    assert_equal "a", A.room(:a)
    ["", "x" * 257, "\xff"].each { |name| assert_raises(ArgumentError) { A.id(name) } }
    [nil, 1, :a, ["a"], Object.new].each { |name| assert_raises(TypeError) { A.id(name) } }
    [nil, 1, ["a"]].each { |name| assert_raises(TypeError) { A.room(name) } }
  end

  def test_info_is_json_of_some_bytes
    assert_nil A.info(nil, 10)
    assert_equal '{"a":[1,null]}', A.info({ a: [1, nil] }, 100)
    assert_equal '"x"', A.info("x", 3)
    assert_raises(ArgumentError) { A.info("x", 2) }
    [1, 1.5, true, :a, Object.new].each { |value| assert_raises(TypeError) { A.info(value, 100) } }
    ["\xff", { "a" => "\xff" }, [Float::NAN]].each { |value| assert_raises(ArgumentError) { A.info(value, 100) } }
    nested = []
    200.times { nested = [nested] }
    assert_raises(ArgumentError) { A.info(nested, 4096) }
  end

  def test_info_of_a_megabyte
    ["x" * 1_000_000, ["x" * 1_000_000], { "a" => "x" * 1_000_000 }].each do |value|
      error = assert_raises(ArgumentError) { A.info(value, 4096) }
      assert_match(/\Ainfo has 10000\d\d bytes as JSON, more than 4096\z/, error.message)
    end
  end

  def test_limits_are_checked
    default = P::Limits.default
    assert_equal 5, default.change(grace: 5).grace
    assert_in_delta 0.5, default.change(grace: 0.5).grace
    { grace: -1, silence: 1, rooms: 0, rooms_per_client: 1.5, replica_bytes: "1", info_bytes: 1 << 20 }.each do |name, value|
      assert_match(/\A#{name} must be .* not /, assert_raises(ArgumentError) { default.change(name => value) }.message)
    end
    assert_match(/has no limit colour/, assert_raises(ArgumentError) { P.configure(colour: 1) }.message)
    assert_match(/the secret of/, assert_raises(ArgumentError) { P.configure(secret: "") }.message)
  end

  def test_without_a_server
    assert_match(/no server runs/, assert_raises(P::Unavailable) { P.list("room") }.message)
    assert_raises(ArgumentError) { P.list("room", timeout: -1) }
    assert_raises(ArgumentError) { P.on_join("room") }
    refute_predicate P, :first?
    P.ended(Object.new)
  end
end
