# frozen_string_literal: true

# trilogy and mysql2 with a real MariaDB.
# SPDX-License-Identifier: MIT

require_relative "servers"
require "mysql2"
require "trilogy"

class DriverTrilogyTest < Minitest::Test
  include WaitingClients

  ROW = ["trilogy", "yes"].freeze

  def gate = Servers.mariadb
  def connect = Trilogy.new(**gate.options)
  def enter(client, number) = client.query(gate.query(number)).first.first
  def session_of(client, _number) = client.query("SELECT CONNECTION_ID()").first.first
  def leave(client) = client.close
  def lost_errors = [Trilogy::Error]

  def test_the_version_of_the_server
    assert Servers::PAGE.include?("MariaDB #{gate.version}"), "MariaDB #{gate.version}"
  end

  # One fiber connects, another one accepts.
  def test_connecting
    TCPServer.open("127.0.0.1", 0) do |listener|
      error = WaitingClients.in_fibers do |all|
        client = all.start { Trilogy.new(host: "127.0.0.1", port: listener.addr[1]) }
        listener.accept.close
        WaitingClients.error_of { client.value }
      end
      assert_operator error, :<, Trilogy::Error
    end
  end

  def test_long_results_and_limits_of_the_client
    seen = WaitingClients.in_fibers do |all|
      all.map(1..3) do |n|
        client = Trilogy.new(**gate.options, read_timeout: 0.2)
        size = client.query("SELECT REPEAT('#{n}', 1000) FROM mysql.seq_1_to_3000").to_a.flatten.tally
        late = WaitingClients.error_of { client.query("SELECT SLEEP(#{PATIENCE})") }
        [size, late]
      end
    end
    assert_equal((1..3).map { |n| [{ n.to_s * 1000 => 3000 }, Trilogy::TimeoutError] }, seen)
  end

  def test_names_of_hosts
    assert_equal %i[other call], WaitingClients.order_of_lookup { Trilogy.new(**gate.options(host: "localhost")).close || true }
  end
end

class DriverMysql2Test < Minitest::Test
  include WaitingClients
  include BlockingCalls

  ROW = ["mysql2", "partly"].freeze

  def gate = Servers.mariadb
  def connect = Mysql2::Client.new(**gate.options)
  def enter(client, number) = client.query(gate.query(number)).first["value"]
  def session_of(client, _number) = client.thread_id
  def leave(client) = client.close
  def lost_errors = [Mysql2::Error]

  def prepared
    client = connect
    statement = client.prepare(gate.query(3))
    gate.shut
    yield statement
  ensure
    client.close
  end

  def value_of(statement)
    statement.execute.first["value"]
  end

  def test_connecting_blocks
    TCPServer.open("127.0.0.1", 0) do |listener|
      arrived = order(inside: -> { listener.wait_readable }, open: -> { listener.accept.close }) do
        WaitingClients.error_of { Mysql2::Client.new(host: "127.0.0.1", port: listener.addr[1]) }
      end
      assert_equal %i[call other], arrived
    end
  end

  # One fiber connects, another one accepts.
  def test_connecting_is_offloaded
    TCPServer.open("127.0.0.1", 0) do |listener|
      error = WaitingClients.in_fibers do |all|
        client = all.start { Rondo.offload { Mysql2::Client.new(host: "127.0.0.1", port: listener.addr[1]) } }
        listener.accept.close
        WaitingClients.error_of { client.value }
      end
      assert_operator error, :<=, Mysql2::Error
    end
  end

  def test_prepared_statements_block
    prepared do |statement|
      arrived = order(inside: -> { gate.inside == 1 }, open: gate.method(:open)) { value_of(statement) }
      assert_equal %i[call other], arrived
    end
  end

  def test_prepared_statements_are_offloaded
    prepared { |statement| assert_equal 21, offloaded { value_of(statement) } }
  end
end
