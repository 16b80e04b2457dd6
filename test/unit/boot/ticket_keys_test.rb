# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/boot/ticket_keys"

class TicketKeysTest < Minitest::Test
  KEYS = Rondo::TicketKeys

  def test_only_where_something_is_encrypted
    assert_nil KEYS.for([], nil)
    assert_nil KEYS.for(%w[tcp://127.0.0.1:1 unix:///run/s http://127.0.0.1:1], nil)
    assert_kind_of Rondo::TLS::Tickets, KEYS.for(%w[tcp://127.0.0.1:1 ssl://127.0.0.1:2], nil)
    assert_kind_of Rondo::TLS::Tickets, KEYS.for(%w[https://127.0.0.1:2], nil)
    assert_equal [{}, []], KEYS.hand_on(nil)
  end

  def test_from_one_program_to_the_next
    before = Rondo::TLS::Tickets.new
    env, kept = KEYS.hand_on(before)
    assert_equal [kept.first.fileno.to_s], env.values
    refute_predicate kept.first, :close_on_exec?
    kept.first.autoclose = false
    first_key = bytes(kept.first)
    after = KEYS.extract(env)
    assert_empty env
    assert_equal first_key, bytes(IO.for_fd(after.fd, autoclose: false))
    refute_equal before.fd, after.fd
    assert_raises(Errno::EBADF) { IO.for_fd(kept.first.fileno) }
    assert_same after, KEYS.for(%w[ssl://127.0.0.1:2], after)
  end

  def bytes(io)
    io.pread(io.stat.size, 0)
  end

  def test_what_is_no_such_descriptor
    assert_nil KEYS.extract({})
    File.open(__FILE__) do |file|
      ["x", "", "-1", "99999", file.fileno.to_s].each do |number|
        env = { KEYS::VARIABLE => number }
        assert_nil KEYS.extract(env), number
        assert_empty env
      end
      refute_empty file.gets # it is somebody else's, and still open
    end
  end

  def test_they_do_not_show_what_they_have
    keys = Rondo::TLS::Tickets.new
    assert_match(/\A#<Rondo::TLS::Tickets:0x\h+>\z/, keys.inspect)
    assert_raises(TypeError) { Marshal.dump(keys) }
    assert_raises(Rondo::Error) { keys.dup.fd }
    assert_raises(Rondo::Error) { keys.send(:initialize) }
    assert_nil keys.renew
  end

  def test_another_process_reads_them
    keys = Rondo::TLS::Tickets.new
    others = Rondo::TLS::Tickets.open(keys.fd)
    assert_equal(-1, others.fd)
    assert_nil others.renew
    assert_raises(Errno::EINVAL) { Rondo::TLS::Tickets.open($stdin.fileno) }
  end
end
