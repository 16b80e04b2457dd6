# frozen_string_literal: true

# What the operator is told of TLS: the control server, rondo top. `rondo check`: test/unit/command/check_test.rb.
# SPDX-License-Identifier: MIT

require_relative "tls_case"
require "json"

class TLSOperatorTest < TLSCase
  def watched(*words)
    server = secure("--control-url", "auto", "--control-token", "none", *words)
    @control = server.wait_for_log(/Control server on (\S+)/)[1]
    server
  end

  # @return [String] body of a page of the control server, or of what a verb answers
  def page(name)
    UNIXSocket.open(@control.delete_prefix("unix://")) do |socket|
      socket.write("GET /#{name} HTTP/1.0\r\n\r\n")
      socket.read[/\r\n\r\n(.*)\z/m, 1]
    end
  end

  def test_one_process
    soon = @certificates.pair("soon", days: -1..5)
    server = watched_with(soon)
    server.wait_for_log(/^! the certificate in \S*soon.pem expires on/)
    curl(server)
    run_command("curl", "-s", "http://127.0.0.1:#{server.port}/")
    check_pages("soon", workers: 1)
    assert_match(/ tls=0 tls_failed=\S+ certificate_days=\d+$/, rondo("top", "--once", "--control-url", @control, "-T", "none").out)
  end

  def watched_with(pair)
    @pair = pair
    watched
  end

  def test_workers
    server = watched("-w", "2")
    server.wait_for_log(/(booted in.*){2}/m)
    curl(server)
    run_command("curl", "-s", "http://127.0.0.1:#{server.port}/")
    check_pages("server", workers: 2)
    File.rename(@certificates.pair("next", names: ["DNS:next.test"]).certificate, @pair.certificate)
    File.rename(File.join(@folder, "next.key.pem"), @pair.key)
    page("reload-certs")
    eventually("the new certificate") { page("stats").include?('"names":["next.test"]') }
    @names = ["next.test"]
    server.signal("USR2")
    server.wait_for_log(/Use Ctrl-C to stop.*Use Ctrl-C to stop/m)
    @control = server.log.scan(/Control server on (\S+)/).last.first
    check_certificates("server")
  end

  def check_pages(file, workers:)
    check_certificates(file)
    eventually("the handshakes") do
      sums = %w[tls_full_total tls_failed_total].map { |name| page("metrics").scan(/^rondo_#{name}\{.*\} (\d+)$/).flatten.sum(&:to_i) }
      sums == [1, 1]
    end
    assert_equal workers, page("metrics").scan(/^rondo_tls_connections\{/).size
  end

  def check_certificates(file)
    stats = JSON.parse(page("stats"))["certificates"]
    assert_equal [[@names || %w[localhost 127.0.0.1], "#{file}.pem"]], stats.map { |one| [one["names"], File.basename(one["file"])] }
    assert_operator stats.first["days_left"], :<=, 30
    assert_match(%r{^rondo_certificate_expiry_time_seconds\{listener="https://127.0.0.1:\d+",file="\S*#{file}.pem"\} \d{10}$}, page("metrics"))
  end
end
