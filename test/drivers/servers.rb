# frozen_string_literal: true

# One server of each kind for all tests of drivers. And what the rows of docs/FIBERS.md say.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/waiting_clients"

module Servers
  PAGE = File.read(File.expand_path("../../docs/FIBERS.md", __dir__))

  # Several fibers may ask for a server at once.
  @starting = Mutex.new

  class << self
    def postgres
      require "support/postgres_server"
      once { @postgres ||= PostgresServer.new }
    end

    def mariadb
      require "support/mariadb_server"
      once { @mariadb ||= MariadbServer.new }
    end

    def redis
      require "support/redis_gate"
      once { @redis ||= RedisGate.new }
    end

    def http
      require "support/http_gate"
      once { @http ||= HTTPGate.new }
    end

    def https
      require "support/http_gate"
      once { @https ||= HTTPGate.new(tls: true) }
    end

    private

    def once(&)
      @starting.synchronize(&)
    end
  end
end

# A call that does not let others run. Another fiber is started after it: who comes first?
module BlockingCalls
  include WaitingClients::Keeper

  private

  # Whether others go on while the call waits at the gate on another thread.
  # @return what the call returns
  def offloaded(&call)
    with_keeper(inside: 1) { Rondo.offload(&call) }
  end

  # @yield the call, which waits until `open` was called
  # @param inside [#call] whether the call waits in the server
  # @return [Array<Symbol>] :call and :other, in the order in which they ended
  def order(inside:, open:, &call)
    ended = []
    keeper = Thread.new do
      WaitingClients.wait_until(&inside)
      open.call
    end
    WaitingClients.in_fibers do |all|
      all.start { call.call && (ended << :call) }
      all.start { ended << :other }
    end
    ended
  ensure
    keeper&.join
  end
end
