# frozen_string_literal: true

# What the operator is told of TLS: rondo check, the control server, rondo top.
# SPDX-License-Identifier: MIT

require_relative "tls_case"
require "json"

class TLSOperatorTest < TLSCase
  def watched(*words)
    server = secure("--control-url", "auto", "--control-token", "none", *words)
    @control = server.wait_for_log(/Control server on (\S+)/)[1]
    server
  end

  def page(name)
    rondo("ctl", name, "-Q", "--control-url", @control, "-T", "none").out
  end

  def test_check
    soon = @certificates.pair("soon", days: -1..9, names: ["DNS:soon.test"])
    File.chmod(0o644, soon.key)
    File.chmod(0o600, @pair.key)
    result = rondo("check", "-b", "ssl://127.0.0.1:0?#{@pair.query}")
    assert_equal 0, result.code, result.err
    assert_match(/^ok      certificate: \S*server.pem: localhost, 127.0.0.1; \d+ days left$/, result.out)
    refute_match(/^warning/, result.out)
    result = rondo("check", "-b", "ssl://127.0.0.1:0?#{@pair.query}&#{soon.query}")
    assert_equal 0, result.code
    assert_equal 2, result.out.scan(/^warning certificate: .*soon/).size, result.out
    other = @certificates.pair("other")
    result = rondo("check", "-b", "ssl://127.0.0.1:0?cert=#{@pair.certificate}&key=#{other.key}")
    assert_equal 1, result.code
    assert_match(/^failed  addresses: .*other.key.pem is not the key of \S*server.pem$/, result.out)
  end

  def test_one_process
    soon = @certificates.pair("soon", days: -1..5)
    server = watched_with(soon)
    server.wait_for_log(/^! the certificate in \S*soon.pem expires on/)
    curl(server)
    run_command("curl", "-s", "http://127.0.0.1:#{server.port}/")
    check_pages("soon", workers: 1)
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
    rondo("ctl", "reload-certs", "-Q", "--control-url", @control, "-T", "none")
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
    assert_match(/ tls=0 tls_failed=\S+ certificate_days=\d+$/, rondo("top", "--once", "--control-url", @control, "-T", "none").out)
  end

  def check_certificates(file)
    stats = JSON.parse(page("stats"))["certificates"]
    assert_equal [[@names || %w[localhost 127.0.0.1], "#{file}.pem"]], stats.map { |one| [one["names"], File.basename(one["file"])] }
    assert_operator stats.first["days_left"], :<=, 30
    assert_match(%r{^rondo_certificate_expiry_time_seconds\{listener="https://127.0.0.1:\d+",file="\S*#{file}.pem"\} \d{10}$}, page("metrics"))
  end
end
