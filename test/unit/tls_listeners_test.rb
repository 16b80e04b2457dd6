# frozen_string_literal: true

# The listeners of a server that have the same words of TLS, and what they share.
# SPDX-License-Identifier: MIT

require "test_helper"
require "socket"
require "rondo"
require "support/certificates"
require "tmpdir"

class TLSListenersTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir("rondo-listeners")
    @certificates = Certificates.new(@folder)
    @uri = "ssl://127.0.0.1:0?#{@certificates.pair("server").query}"
    @server = Rondo::Server.new(->(_env) { [200, {}, []] })
  end

  def teardown
    @server.stop(force: true)
    @server.run
    FileUtils.rm_rf(@folder)
  end

  def material
    Rondo::Address.read_tls(@uri, Rondo::Address.parse(@uri))[:tls]
  end

  # A worker that covers for others listens again and again for as long as it lives.
  def test_another_listener_takes_no_memory_of_its_own
    memory = -> { File.read("/proc/self/status")[/^VmData:\s+(\d+)/, 1].to_i }
    tls = material
    sockets = Array.new(100) { TCPServer.new("127.0.0.1", 0).tap { |socket| socket.autoclose = false } }
    @server.listen(@uri)
    before = memory.call
    sockets.each { |socket| @server.listen_fd(socket.fileno, scheme: "https", tls: tls) }
    assert_operator memory.call - before, :<, 6000 # KB; a transport alone takes 130
  end

  def test_only_what_has_a_listener_shows_certificates
    @server.show_certificates([material])
    @server.listen(@uri)
    other = material
    other[:certificates].first[:key] = "nothing"
    error = assert_raises(Rondo::AddressError) { @server.show_certificates([other]) }
    assert_match(/has no private key/, error.message)
    @server.show_certificates([material])
  end
end
