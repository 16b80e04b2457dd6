# frozen_string_literal: true

# The module Puma of a bundle without the gem puma, in a process without a server; and the servers that plugins make.
# SPDX-License-Identifier: MIT

require "test_helper"
require "net/http"
require "rondo/puma/module"

class PumaModuleTest < Minitest::Test
  def test_what_gems_look_for
    assert_operator Gem::Version.new(Puma::Const::VERSION), :>=, Gem::Version.new("7")
    assert_equal Puma::Const::PUMA_VERSION, Puma::Const::VERSION
    assert_same Rondo::Configuration::Verbs, Puma::DSL
    refute Puma.jruby?
    assert_nil Puma::Server.current
  end

  def test_events
    events = Puma::Events.new
    seen = []
    events.register(:state) { |state| seen << state }
    events.on_booted { seen << :booted }
    object = events.register(:state, ->(state) { seen << state.to_s })
    assert_respond_to object, :call
    events.fire(:state, :run)
    events.fire_after_booted!
    assert_equal [:run, "run", :booted], seen
    assert_raises(ArgumentError) { events.register(:state) }
    assert_raises(ArgumentError) { events.register(:state, object) { nil } }
  end

  def test_log_writers
    log = Puma::LogWriter.strings
    log.log "one"
    log.write "two"
    log.unknown_error RuntimeError.new("three"), nil, "why"
    log.debug { flunk }
    assert_equal "one\ntwo", log.stdout.string
    assert_equal "why: three (RuntimeError)\n\n", log.stderr.string
    assert_raises(SystemExit) { log.error "four" }
    Puma::LogWriter.null.log "five"
    assert_same $stdout, Puma::LogWriter.stdio.stdout
  end

  def test_a_server
    events = Puma::Events.new
    states = Queue.new
    events.register(:state) { |state| states << state }
    server = Puma::Server.new(->(env) { [200, {}, [env["PATH_INFO"]]] }, events, min_threads: 0, max_threads: 2,
                                                                                 log_writer: Puma::LogWriter.null)
    socket = server.add_tcp_listener("127.0.0.1", 0)
    assert_equal [socket.addr[1]], server.connected_ports
    thread = server.run
    assert_equal "/x", Net::HTTP.get(URI("http://127.0.0.1:#{socket.addr[1]}/x"))
    assert_equal [2, 0, 1], [server.max_threads, server.backlog, server.requests_count]
    refute_predicate server, :shutting_down?
    server.stop(true)
    assert_predicate server, :shutting_down?
    refute_predicate thread, :alive?
    assert_equal %i[booting running stop done], Array.new(4) { states.pop }
  end

  def test_a_server_without_a_listener
    server = Puma::Server.new(->(_env) {})
    assert_raises(Rondo::AddressError) { server.run }
    assert_raises(Rondo::AddressError) { server.add_tcp_listener("192.0.2.1", 1) }
  end
end
