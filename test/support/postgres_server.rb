# frozen_string_literal: true

# A PostgreSQL that belongs to the test, in a folder that is removed. Its gate (see waiting_clients.rb) is an advisory
# lock that one session of the test's holds. It refuses to run as root, so then it gets the user `postgres`.
# SPDX-License-Identifier: MIT

require "pg"
require_relative "child_server"

class PostgresServer < ChildServer
  GATE = 42
  PROGRAMS = Dir["/usr/lib/postgresql/*/bin"].max_by { |path| Integer(path[%r{/(\d+)/bin}, 1]) }
  OPTIONS = %w[fsync=off synchronous_commit=off shared_buffers=1MB max_connections=60 autovacuum=off
               dynamic_shared_memory_type=mmap listen_addresses=127.0.0.1 wal_level=minimal max_wal_senders=0 client_min_messages=error].freeze

  def initialize
    super { make_folder }
  end

  # @return [Hash] for PG.connect
  def options(host: folder)
    { host: host, port: port, user: "postgres", dbname: "postgres" }
  end

  # @return [String]
  def version
    keeper.parameter_status("server_version")[/\A\d+/]
  end

  # @return [String] a query that waits at the gate, and returns this number times seven
  def query(number)
    "SELECT #{number} * 7 AS value, pg_advisory_xact_lock_shared(#{GATE})::text"
  end

  # @return [String] the value, in a session that is not a fiber's
  def ask(query)
    keeper.exec(query).getvalue(0, 0)
  end

  def inside
    ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").to_i
  end

  def open
    ask("SELECT pg_advisory_unlock_all()")
  end

  def shut
    ask("SELECT pg_advisory_lock(#{GATE})")
  end

  def kill_session(id)
    ask("SELECT pg_terminate_backend(#{id})")
  end

  # All sessions end at once.
  def crash
    signal("QUIT")
    @waiter.join
    @keeper&.close
    @keeper = nil
  end

  def close
    signal("INT") # takes its shared memory with it
    @waiter.join(DEADLINE)
    super
  end

  private

  def make_folder
    FileUtils.chown(user, nil, folder) if user
    system(*as_user, File.join(PROGRAMS, "initdb"), "-D", File.join(folder, "base"), "-U", "postgres", "-A", "trust",
           "-N", "--locale=C", "-E", "UTF8", out: log_path, err: %i[child out]) || raise(File.read(log_path))
  end

  def user
    "postgres" if Process.uid.zero?
  end

  def as_user
    user ? ["setpriv", "--reuid=#{user}", "--regid=#{user}", "--init-groups"] : []
  end

  def command
    [*as_user, File.join(PROGRAMS, "postgres"), "-D", File.join(folder, "base"), "-k", folder, "-p", port.to_s,
     *OPTIONS.flat_map { |option| ["-c", option] }]
  end

  def listening?
    PG.connect(options).close
    true
  rescue PG::Error
    false
  end

  def keeper
    @keeper ||= PG.connect(options)
  end
end
