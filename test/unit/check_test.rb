# frozen_string_literal: true

# `rondo check` line by line.
# SPDX-License-Identifier: MIT

require "test_helper"
require "socket"
require "stringio"
require "rondo/check"
require "rondo/configuration"

class CheckTest < Minitest::Test
  HELLO = ->(_env) { [200, {}, []] }

  def check(**values)
    given = { app: HELLO, bind: ["tcp://127.0.0.1:0"] }.merge(values)
    settings = Rondo::Settings::Resolved.new(given.transform_values { |value| [value, "test"] })
    out = StringIO.new
    environment = ENV.to_h
    title = $PROGRAM_NAME
    code = Rondo::Check.new(settings, Rondo::Configuration.new, out: out).run
    [code, out.string.lines(chomp: true)]
  ensure
    ENV.replace(environment)
    $PROGRAM_NAME = title
  end

  def test_all_is_well
    code, lines = check
    assert_equal 0, code
    assert_match(/\Aok      configuration: none\z/, lines[0])
    assert_match(/\Aok      application: /, lines[1])
    assert_match(%r{\Aok      addresses: http://127\.0\.0\.1:\d+\z}, lines[2])
    assert_match(/\Aok      descriptors: limit \d+, connections at most \d+\z/, lines[3])
    assert_match(/ at most 5\z/, check(max_connections: 5).last.last)
  end

  def test_nothing_stays_open
    _, lines = check
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", lines[2][/\d+\z/].to_i) }
  end

  def test_a_port_in_use
    TCPServer.open("127.0.0.1", 0) do |taken|
      code, lines = check(bind: ["tcp://127.0.0.1:#{taken.addr[1]}"])
      assert_equal 1, code
      assert_match(/\Afailed  addresses: .*already in use by process #{Process.pid}/, lines[2])
      assert_match(/\Aok      descriptors/, lines[3])
    end
  end

  def test_more_connections_than_descriptors
    limit, = Process.getrlimit(:NOFILE)
    code, lines = check(max_connections: limit)
    assert_equal 1, code
    assert_match(/\Afailed  descriptors: max_connections #{limit} needs #{limit + 64}/, lines.last)
  end

  def test_an_application_that_is_none
    code, lines = check(app: Object.new)
    assert_equal 1, code
    assert_match(/\Afailed  application: .*call/, lines[1])
  end
end
