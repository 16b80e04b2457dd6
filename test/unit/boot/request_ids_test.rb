# frozen_string_literal: true

# Which ids of a request are shown, and when one is made.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"

class RequestIdsTest < Minitest::Test
  TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
  PARENT = "00f067aa0ba902b7"
  UUID = /\A\h{8}-\h{4}-4\h{3}-[89ab]\h{3}-\h{12}\z/

  # X-Request-Id, and whether it is shown.
  IDS = {
    "a" => true, "7f2c9149-0a5e-4a05-9c4c-5c0a3a51a3f5" => true, "host:8080/Az~09.x+y=@_" => true, "a" * 128 => true,
    "" => false, "a" * 129 => false, "a b" => false, "a, b" => false, "a\n" => false, "a\nb" => false, "a\"" => false,
    "\xff".b => false, "ä" => false, "a]" => false, "\e[2J" => false, "a\u0000" => false
  }.freeze

  # traceparent, and whether it is shown (Trace Context, 3.2).
  TRACES = {
    "00-#{TRACE}-#{PARENT}-01" => true, "00-#{TRACE}-#{PARENT}-ff" => true, "01-#{TRACE}-#{PARENT}-00" => true,
    "cc-#{TRACE}-#{PARENT}-01-what-comes-later" => true, "cc-#{TRACE}-#{PARENT}-01.later" => false,
    "00-#{TRACE}-#{PARENT}-01-more" => false, "ff-#{TRACE}-#{PARENT}-01" => false, "00-#{"0" * 32}-#{PARENT}-01" => false,
    "00-#{TRACE}-#{"0" * 16}-01" => false, "00-#{TRACE.upcase}-#{PARENT}-01" => false, "00-#{TRACE}-#{PARENT}-0" => false,
    "00-#{TRACE}-#{PARENT}" => false, "00-#{TRACE}-#{PARENT}-01\n" => false, "0-#{TRACE}-#{PARENT}-01" => false,
    "00-#{TRACE}a-#{PARENT}-01" => false, "00-#{TRACE}-#{PARENT}-01, 00-#{TRACE}-#{PARENT}-01" => false, "" => false
  }.freeze

  # Returns the env that the application gets.
  def env_with(fields, makes: false)
    got = nil
    Rondo::RequestIds.new(->(env) { got = env }, makes).call(fields.dup)
    got
  end

  def test_ids_of_clients
    IDS.each do |id, shown|
      env = env_with({ "HTTP_X_REQUEST_ID" => id })
      assert_equal [shown ? { "request_id" => id } : nil], [env["rondo.ids"]], id.inspect
      assert_equal id, env["HTTP_X_REQUEST_ID"]
    end
    assert_equal({}, env_with({}))
  end

  def test_ids_that_are_made
    IDS.each do |id, shown|
      env = env_with({ "HTTP_X_REQUEST_ID" => id }, makes: true)
      shown ? assert_equal(id, env["HTTP_X_REQUEST_ID"]) : assert_match(UUID, env["HTTP_X_REQUEST_ID"])
      assert_equal({ "request_id" => env["HTTP_X_REQUEST_ID"] }, env["rondo.ids"])
    end
    assert_equal 100, Array.new(100) { env_with({}, makes: true)["rondo.ids"]["request_id"] }.uniq.size
  end

  def test_traces
    TRACES.each do |text, shown|
      env = env_with({ "HTTP_TRACEPARENT" => text, "HTTP_TRACESTATE" => "a=b" })
      assert_equal [shown ? { "trace_id" => TRACE, "parent_id" => PARENT } : nil], [env["rondo.ids"]], text
      assert_equal [text, "a=b"], env.values_at("HTTP_TRACEPARENT", "HTTP_TRACESTATE")
    end
  end

  # The application may change strings of its env in place, but not what the log shows.
  def test_the_application_changes_its_own
    env = env_with({ "HTTP_X_REQUEST_ID" => +"a" })
    env["HTTP_X_REQUEST_ID"] << "b"
    assert_equal({ "request_id" => "a" }, env["rondo.ids"])
    assert_predicate env["rondo.ids"], :frozen?
  end
end
