# frozen_string_literal: true

# sqlite3: it computes in this process.
# SPDX-License-Identifier: MIT

require_relative "servers"
require "sqlite3"
require "tmpdir"

class DriverSqlite3Test < Minitest::Test
  ROW = ["sqlite3", "no"].freeze
  LONG = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT count(*) FROM n"

  def setup
    @base = SQLite3::Database.new(":memory:")
  end

  def teardown
    @base.close
  end

  def test_queries_block
    ended = []
    WaitingClients.in_fibers do |all|
      all.start { @base.execute(LONG) && (ended << :call) }
      all.start { ended << :other }
    end
    assert_equal %i[call other], ended
  end

  # It does not give up the lock of Ruby, so no thread goes on. Ruby may switch threads before the query and after it.
  def test_offloaded_queries_hold_up_all_threads
    ticks = 0
    WaitingClients.in_fibers do |all|
      query = all.start do
        Rondo.offload { Array.new(20) { [ticks, @base.execute(LONG) && ticks] } }
      ensure
        query = nil
      end
      all.start { ((ticks += 1) && sleep(0)) while query }
      assert_includes query.value.map { |before, after| after - before }, 0
    end
  end

  def test_waits_for_other_connections_let_others_run
    Dir.mktmpdir do |folder|
      one, two = Array.new(2) { SQLite3::Database.new(File.join(folder, "base")) }
      one.execute("CREATE TABLE numbers (number INTEGER)")
      two.busy_handler_timeout = WaitingClients::PATIENCE * 1000
      WaitingClients.in_fibers do |all|
        one.transaction(:immediate) do
          all.start { two.execute("INSERT INTO numbers VALUES (2)") }
          sleep 0.001
          one.execute("INSERT INTO numbers VALUES (1)")
        end
      end
      assert_equal [[1], [2]], one.execute("SELECT number FROM numbers")
    ensure
      [one, two].each { |base| base&.close }
    end
  end
end
