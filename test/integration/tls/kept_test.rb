# frozen_string_literal: true

# Clients over TLS while workers and the master are replaced, on connections that are kept and on new ones: each request
# is answered, and each new connection resumes the session of the first. The client is the one of bench/restarts.rb,
# with which `bin/test --long` does the same a hundred times.
# SPDX-License-Identifier: MIT

require_relative "../cluster/cluster_case"
require_relative "../../../bench/restarts"
require "support/certificates"

class TLSKeptTest < ClusterCase
  CLIENTS = 16
  WORKERS = 4

  def setup
    super
    Bench::Programs.build
    pair = Certificates.new(@folder).pair("server")
    write "config/rondo.rb", "idle_grace_ms 5000\n" # the client itself may be silent for a while
    @server = cluster(workers: WORKERS, binds: ["ssl://127.0.0.1:0?#{pair.query}"])
    @client = Bench::RestartClient.new(@server.port, "-c", CLIENTS.to_s, "--mixed", "--tls")
    @sum = Hash.new(0)
  end

  def add(counts)
    @sum.merge!(counts) { |_, one, other| one + other }
  end

  def test_every_request_is_answered_and_every_session_resumed
    %w[USR1 USR2].each do |signal|
      add(@client.more(CLIENTS * 5))
      old = workers(@server).values
      assert_equal WORKERS, old.size
      @server.signal(signal)
      wait_for_end_of(*old)
    end
    add(@client.more(CLIENTS * 5))
    add(@client.stop)
    assert_empty Bench::RestartClient.lost(@sum)
    assert_operator @sum["handshakes"], :>, 2 * CLIENTS
    assert_operator Bench::RestartClient.full_handshakes(@sum), :<=, CLIENTS
  end
end
