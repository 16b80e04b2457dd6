# frozen_string_literal: true

# A MariaDB that belongs to the test, in a folder that is removed. Its gate (see waiting_clients.rb) is a lock of users
# that one session of the test's holds.
# SPDX-License-Identifier: MIT

require "etc"
require "trilogy"
require_relative "child_server"

class MariadbServer < ChildServer
  GATE = "gate"
  OPTIONS = %w[--skip-log-bin --innodb-buffer-pool-size=8M --innodb-log-file-size=4M --innodb-flush-log-at-trx-commit=0
               --performance-schema=OFF --skip-name-resolve --bind-address=127.0.0.1].freeze

  def initialize
    super { make_folder }
  end

  # @return [Hash] for clients
  def options(host: "127.0.0.1")
    { host: host, port: port, username: "root" }
  end

  # @return [String]
  def version
    keeper.query("SELECT VERSION()").first.first[/\A\d+\.\d+/]
  end

  # @return [String] a query that waits at the gate, and returns this number times seven
  def query(number)
    "SELECT #{number} * 7 AS value, GET_LOCK('#{GATE}', 100), RELEASE_LOCK('#{GATE}')"
  end

  def inside
    ask("SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'")
  end

  def open
    ask("SELECT RELEASE_ALL_LOCKS()")
  end

  def shut
    ask("SELECT GET_LOCK('#{GATE}', 100)")
  end

  def kill_session(id)
    keeper.query("KILL #{id}")
  end

  def crash
    kill
    @keeper = nil
  end

  private

  def make_folder
    FileUtils.mkdir(temporary)
    system("mariadb-install-db", "--no-defaults", "--datadir=#{base}", "--tmpdir=#{temporary}",
           "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve", "--user=#{user}",
           out: log_path, err: %i[child out]) || raise(File.read(log_path))
  end

  def base
    File.join(folder, "base")
  end

  # A MariaDB that starts removes the temporary tables of all others in this folder.
  def temporary
    File.join(folder, "temporary")
  end

  def user
    Etc.getpwuid.name
  end

  def command
    ["/usr/sbin/mariadbd", "--no-defaults", "--user=#{user}", "--datadir=#{base}", "--tmpdir=#{temporary}", "--port=#{port}",
     "--socket=#{File.join(folder, "mariadb.sock")}", "--pid-file=#{File.join(folder, "pid")}", *OPTIONS]
  end

  def listening?
    Trilogy.new(**options).close
    true
  rescue Trilogy::Error
    false
  end

  def keeper
    @keeper ||= Trilogy.new(**options)
  end

  def ask(query)
    keeper.query(query).first.first
  end
end
