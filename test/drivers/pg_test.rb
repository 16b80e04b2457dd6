# frozen_string_literal: true

# pg with a real PostgreSQL, and the pools of Sequel and ActiveRecord with it.
# SPDX-License-Identifier: MIT

require_relative "servers"
require "active_record"
require "pg"
require "sequel"

# What all of them have in common.
module PostgresClients
  include WaitingClients

  def gate = Servers.postgres
end

class DriverPgTest < Minitest::Test
  include PostgresClients
  include BlockingCalls

  ROW = ["pg", "yes"].freeze

  def connect = PG.connect(gate.options)
  def enter(conn, number) = Integer(conn.exec(gate.query(number)).getvalue(0, 0))
  def session_of(conn, _number) = conn.backend_pid
  def leave(conn) = conn.close
  def lost_errors = [PG::Error]

  def test_the_version_of_the_server
    assert Servers::PAGE.include?("PostgreSQL #{gate.version}"), "PostgreSQL #{gate.version}"
  end

  def test_names_of_hosts
    assert_equal %i[other call], WaitingClients.order_of_lookup { PG.connect(gate.options(host: "localhost")).close || true }
  end

  # More than the buffers of the sockets hold.
  def test_long_results_and_copies
    rows = WaitingClients.in_fibers do |all|
      all.map(1..3) do |n|
        conn = connect
        conn.exec("CREATE TEMP TABLE lines (text text)")
        conn.copy_data("COPY lines FROM STDIN") { 2000.times { conn.put_copy_data("#{n.to_s * 1000}\n") } }
        found = conn.exec("SELECT text FROM lines").column_values(0)
        conn.close
        [found.size, found.uniq]
      end
    end
    assert_equal((1..3).map { |n| [2000, [n.to_s * 1000]] }, rows)
  end

  def test_prepared_statements_and_notifications
    seen = WaitingClients.in_fibers do |all|
      listener = connect.tap { |conn| conn.exec("LISTEN news") }
      waiting = all.start { listener.wait_for_notify(PATIENCE) { |_, _, text| break text } }
      conn = connect
      conn.prepare("tell", "SELECT pg_notify('news', $1)")
      conn.exec_prepared("tell", ["hello"])
      [waiting.value, listener.close, conn.close].first
    end
    assert_equal "hello", seen
  end

  def test_a_query_is_cancelled
    error = with_keeper(inside: 1, first: -> { gate.ask("SELECT pg_cancel_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") }) do
      conn = connect
      enter(conn, 1)
    rescue PG::QueryCanceled => e
      [e.class, conn.exec("SELECT 5").getvalue(0, 0), conn.close].take(2)
    end
    assert_equal [PG::QueryCanceled, "5"], error
  end

  # Somebody else locks the table of large objects until another one waits for it.
  def hold_large_objects
    held = "relation = 'pg_largeobject_metadata'::regclass"
    holder = connect
    holder.send_query("DO $$ BEGIN LOCK TABLE pg_largeobject_metadata IN ACCESS EXCLUSIVE MODE; " \
                      "WHILE NOT EXISTS (SELECT FROM pg_locks WHERE #{held} AND NOT granted) LOOP " \
                      "PERFORM pg_sleep(0.001); END LOOP; END $$")
    WaitingClients.wait_until { gate.ask("SELECT count(*) FROM pg_locks WHERE #{held} AND granted") == "1" }
    yield
  ensure
    holder.close
  end

  def test_large_objects_block
    ended = []
    conn = connect
    hold_large_objects do
      WaitingClients.in_fibers do |all|
        all.start { conn.lo_create(0) && (ended << :call) }
        all.start { ended << :other }
      end
    end
    conn.close
    assert_equal %i[call other], ended
  end
end

# Both pools give each fiber a connection of its own.
module PostgresPools
  include PostgresClients

  def session_of(_pool, number)
    "(SELECT pid FROM pg_stat_activity WHERE query LIKE '%SELECT #{number} * 7 %' AND pid <> pg_backend_pid())"
  end

  def leave(_pool) = nil

  # Four connections for twenty fibers.
  def take_turns(&ask)
    WaitingClients.in_fibers { |all| all.map(1..20) { |n| 3.times.map { ask.call(n) }.uniq } }
  end
end

class DriverSequelTest < Minitest::Test
  include PostgresPools

  ROW = ["Sequel", "yes"].freeze

  # The settings are the process's.
  def setup
    Sequel.extension :fiber_concurrency
    @base = make_base(MANY)
  end

  def teardown
    @base.disconnect
  end

  def make_base(most)
    Sequel.connect(adapter: "postgres", host: gate.folder, port: gate.port, user: "postgres", database: "postgres",
                   client_min_messages: :error, max_connections: most, pool_timeout: PATIENCE, keep_reference: false)
  end

  def connect = @base
  def enter(base, number) = base.fetch(gate.query(number)).get(:value)
  def leave_all = @base.disconnect
  def lost_errors = [Sequel::DatabaseError]

  def test_more_fibers_than_connections
    small = make_base(4)
    values = take_turns { |n| small.transaction { small.get(Sequel.lit("#{n} + 0 * pg_backend_pid()")) } }
    assert_equal (1..20).map { |n| [n] }, values
    assert_operator small.pool.size, :<=, 4
  ensure
    small&.disconnect
  end
end

class DriverActiveRecordTest < Minitest::Test
  include PostgresPools

  ROW = ["ActiveRecord", "yes"].freeze

  class Base < ActiveRecord::Base
    self.abstract_class = true
  end

  def setup
    @before = ActiveSupport::IsolatedExecutionState.isolation_level
    ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
    connect_all(MANY)
  end

  def teardown
    Base.remove_connection
    ActiveSupport::IsolatedExecutionState.isolation_level = @before
  end

  def connect_all(most)
    Base.establish_connection(adapter: "postgresql", host: gate.folder, port: gate.port, username: "postgres",
                              database: "postgres", min_messages: "error", pool: most, checkout_timeout: PATIENCE)
  end

  def connect = Base
  def enter(base, number) = base.with_connection { |conn| conn.select_value(gate.query(number)) }
  def leave_all = Base.connection_pool.disconnect!
  def lost_errors = [ActiveRecord::ActiveRecordError]

  def test_more_fibers_than_connections
    connect_all(4)
    values = take_turns { |n| Base.transaction { Base.with_connection { |conn| conn.select_value("SELECT #{n}") } } }
    assert_equal (1..20).map { |n| [n] }, values
    assert_operator Base.connection_pool.connections.size, :<=, 4
  end
end
