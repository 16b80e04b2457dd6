# frozen_string_literal: true

# A port for TLS stays one, whatever happens to workers and to the master; and the master alone reads keys.
# SPDX-License-Identifier: MIT

require_relative "tls_case"

class TLSClusterTest < TLSCase
  def cluster(*words, **options)
    server = secure("-w", "2", *words, **options)
    server.wait_for_log(/(booted in.*){2}/m)
    server
  end

  def after_signal(server, signal, pattern)
    from = server.log.bytesize
    server.signal(signal)
    server.wait_for_log(pattern, from: from)
  end

  def assert_served(server)
    assert_match(/\A\d+\z/, curl(server, "/pid").out)
    assert_match(/use https/, run_command("curl", "-sS", "http://127.0.0.1:#{server.port}/").out)
  end

  def test_workers_do_not_need_the_files
    server = cluster
    File.delete(@pair.key, @pair.certificate)
    assert_served(server)
    after_signal(server, "USR1", /(phase: 1.*){2}/m)
    assert_served(server)
    after_signal(server, "TTIN", /Worker 2 .*booted/)
    assert_served(server)
    Process.kill("KILL", Integer(curl(server, "/pid").out))
    server.wait_for_log(/(booted in.*){6}/m)
    assert_served(server)
  end

  def test_a_restart_by_exec_reads_them_again
    server = cluster
    next_pair = @certificates.pair("next")
    File.rename(next_pair.certificate, @pair.certificate)
    File.rename(next_pair.key, @pair.key)
    after_signal(server, "USR2", /(phase: \d.*){2}/m)
    assert_served(server)
    connect(server) { |client| assert_equal "/CN=next", client.peer_cert.subject.to_s }
  end

  def test_one_process_that_restarts
    server = secure
    after_signal(server, "USR2", /Use Ctrl-C to stop/)
    assert_served(server)
  end

  def test_a_configuration_file
    write "config/rondo.rb", <<~RUBY
      workers 2
      clear_binds!
      ssl_bind "127.0.0.1", 0, cert_pem: File.read(#{@pair.certificate.inspect}), key_pem: File.read(#{@pair.key.inspect})
    RUBY
    server = start(binds: [], deadline: PATIENCE)
    server.wait_for_log(/(booted in.*){2}/m)
    url = server.wait_for_log(%r{Listening on (https://\S+)})[1]
    assert_match(/\A\d+\z/, run_command("curl", "-sS", "--cacert", @certificates.authority, "#{url}/pid").out)
  end
end
