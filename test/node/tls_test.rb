# frozen_string_literal: true

# The files of TLS on Node: clients that have to show a certificate, and files that cannot be used.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "open3"
require "openssl"
require "socket"
require "support/certificates"
require "support/node_process"
require "tmpdir"

class NodeTLSTest < Minitest::Test
  APP = File.expand_path("answers.ru", __dir__)

  def setup
    @folder = Dir.mktmpdir
    @certificates = Certificates.new(@folder)
    @pair = @certificates.pair("server")
  end

  def teardown
    @server&.stop
    FileUtils.rm_rf(@folder)
  end

  # @return [Array(String, Integer)] what a server says that does not start, and its exit code
  def refused(*words)
    output, status = Open3.capture2e({ "RONDO_NODE_CACHE" => NodeProcess::CACHE }, *NodeProcess::COMMAND, "-p", "0", *words, APP)
    [output.lines.grep_v(/\A\* /).join, status.exitstatus]
  end

  def curl(*words)
    output, = Open3.capture2e("curl", "-sS", "--cacert", @certificates.authority, *words, "https://127.0.0.1:#{@server.own_port}/parts")
    output
  end

  def test_clients_have_to_show_a_certificate
    NodeProcess.only_on_node(self, "it cannot demand certificates of clients")
    @server = NodeProcess.new(APP, args: ["-s", "-c", @pair.certificate, "-k", @pair.key, "-a", @certificates.authority])
    own = @certificates.pair("client")
    stranger = Certificates.new(@folder, "other").pair("stranger")
    assert_equal "abcd", curl("--cert", own.certificate, "--key", own.key)
    refute_includes curl, "abcd"
    refute_includes curl("--cert", stranger.certificate, "--key", stranger.key), "abcd"
  end

  # uWebSockets.js asks for a certificate, but lets in who has none.
  def test_certificates_of_clients_need_nodes_own_server
    uws = File.join(@folder, "uws.js")
    said = refused("-s", "-c", @pair.certificate, "-k", @pair.key, "-a", @certificates.authority, "--engine", "uws", "--uws-file", uws)
    assert_equal ["rondo: --ca-file needs --engine node\n", 2], said
  end

  # A forgotten -s is no server without TLS.
  def test_files_without_tls
    assert_equal ["rondo: --cert-file needs --secure\n", 2], refused("-c", @pair.certificate, "-k", @pair.key)
    assert_equal ["rondo: --ca-file needs --secure\n", 2], refused("-a", @certificates.authority)
  end

  # As clients leave them that connect in advance.
  def test_silent_connections_do_not_delay_a_stop
    @server = NodeProcess.new(APP, args: ["-s", "-c", @pair.certificate, "-k", @pair.key, "--set", "drain_timeout_ms=600000"])
    silent = TCPSocket.new("127.0.0.1", @server.own_port)
    greeted = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", @server.own_port)).tap { |one| (one.sync_close = true) && one.connect }
    assert_equal "abcd", curl
    assert_predicate @server.stop(signal: "TERM"), :success?
  ensure
    [silent, greeted].compact.each(&:close)
  end

  def test_files_that_cannot_be_used
    garbage = File.join(@folder, "garbage.pem").tap { |path| File.write(path, "garbage") }
    other = @certificates.pair("other").key
    { ["-c", garbage, "-k", @pair.key] => "cannot use the certificate #{garbage} with the key #{@pair.key}: ",
      ["-c", @pair.certificate, "-k", other] => "cannot use the certificate #{@pair.certificate} with the key #{other}: key values mismatch",
      ["-c", @pair.certificate, "-k", @pair.key, "-a", garbage] => "there is no certificate in #{garbage}" }.each do |words, line|
      output, code = refused("-s", *words, "-w", "2")
      assert_equal [1, 2], [output.lines.size, code], output
      assert_includes output, "rondo: #{line}"
    end
  end
end
