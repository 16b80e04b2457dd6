# frozen_string_literal: true

# Sessions are resumed by whichever worker gets the connection, and after every kind of restart. Clients: openssl
# s_client and Ruby's OpenSSL.
# SPDX-License-Identifier: MIT

require_relative "tls_case"

class TLSTicketsTest < TLSCase
  VERSIONS = { "-tls1_2" => OpenSSL::SSL::TLS1_2_VERSION, "-tls1_3" => OpenSSL::SSL::TLS1_3_VERSION }.freeze

  def setup
    super
    @sessions = {}
  end

  # Shakes hands, asks for the worker's pid, and keeps the last ticket.
  # @return [Array(Boolean, String)] whether the session was resumed, and the pid
  def meet(server, version, friend = nil)
    context = OpenSSL::SSL::SSLContext.new
    context.set_params(ca_file: @certificates.authority, min_version: version, max_version: version)
    context.add_certificate(*friend) if friend
    context.session_cache_mode = OpenSSL::SSL::SSLContext::SESSION_CACHE_CLIENT |
                                 OpenSSL::SSL::SSLContext::SESSION_CACHE_NO_INTERNAL_STORE
    context.session_new_cb = ->((_, session)) { @sessions[version] = session }
    socket = TCPSocket.new("127.0.0.1", server.port)
    client = OpenSSL::SSL::SSLSocket.new(socket, context)
    client.hostname = "localhost"
    client.session = @sessions[version] if @sessions[version]
    client.connect
    client.write("GET /pid HTTP/1.0\r\n\r\n")
    pid = client.read[/[^\n]+\z/]
    client.close
    [client.session_reused?, pid]
  ensure
    socket&.close
  end

  def assert_resumed(server, times = 4)
    VERSIONS.each do |name, version|
      times.times { assert meet(server, version).first, name }
    end
  end

  def begin_sessions(server)
    VERSIONS.each_value { |version| refute meet(server, version).first }
  end

  def after_signal(server, signal, pattern)
    from = server.log.bytesize
    server.signal(signal)
    server.wait_for_log(pattern, from: from)
  end

  def test_any_worker_resumes
    server = secure("-w", "4")
    server.wait_for_log(/(booted in.*){4}/m)
    begin_sessions(server)
    pids = Array.new(100) do
      resumed, pid = meet(server, VERSIONS["-tls1_3"])
      assert resumed
      pid
    end
    assert_operator pids.uniq.size, :>, 1
    assert_resumed(server)
    Process.kill("KILL", Integer(pids.last))
    server.wait_for_log(/(booted in.*){5}/m)
    assert_resumed(server)
    after_signal(server, "USR1", /(phase: 1.*){4}/m)
    assert_resumed(server)
    after_signal(server, "USR2", /(phase: \d.*){4}/m)
    assert_resumed(server)
    assert_no_key(server)
  end

  # The keys themselves, as only the master has them open: neither the log nor any environment has them.
  def assert_no_key(server)
    fd = Dir["/proc/#{server.pid}/fd/*"].find { |path| File.symlink?(path) && File.readlink(path).include?("rondo tickets") }
    keys = File.binread(fd)[16..].scan(/.{88}/mn).flat_map { |place| [place[16, 32], place[48, 32]] } - ["\0" * 32]
    assert_operator keys.size, :>=, 2
    seen = [server.log.b, *children(server.pid).map { |pid| File.binread("/proc/#{pid}/environ") }]
    keys.flat_map { |key| [key, key.unpack1("H*"), [key].pack("m0")] }.product(seen) { |key, text| refute_includes text, key }
    refute_match(/PRIVATE KEY/, server.log)
  end

  def children(pid)
    Dir["/proc/#{pid}/task/*/children"].flat_map { |path| File.read(path).split }
  end

  def test_one_process_and_what_it_becomes
    at_port = %W[-p 0 -tls -cert #{@pair.certificate} -key #{@pair.key}]
    [secure, start(*at_port, binds: ["127.0.0.1"])].each do |server|
      @sessions.clear
      begin_sessions(server)
      assert_resumed(server)
      after_signal(server, "USR2", /Use Ctrl-C to stop/)
      assert_resumed(server)
    end
  end

  # The ticket has the certificate of the client: another worker knows it as well.
  def test_the_application_still_knows_the_client
    write "config.ru", 'run ->(env) { [200, {}, [env.values_at("SSL_CLIENT_S_DN", "SSL_CLIENT_VERIFY").join(" ")]] }'
    pair = @certificates.pair("friend", names: [])
    friend = [OpenSSL::X509::Certificate.new(File.read(pair.certificate)), OpenSSL::PKey.read(File.read(pair.key))]
    server = secure("-w", "2", query: "#{@pair.query}&verify_mode=force_peer&ca=#{@certificates.authority}")
    server.wait_for_log(/(booted in.*){2}/m)
    VERSIONS.each_value do |version|
      assert_equal [false, "CN=friend SUCCESS"], meet(server, version, friend)
      4.times { assert_equal [true, "CN=friend SUCCESS"], meet(server, version) }
    end
  end

  def test_openssl_resumes
    server = secure("-w", "2")
    server.wait_for_log(/(booted in.*){2}/m)
    VERSIONS.each_key do |version|
      assert_match(/^New, /, s_client(server, version, "-sess_out", "session"))
      4.times { assert_match(/^Reused, /, s_client(server, version, "-sess_in", "session", "-sess_out", "session")) }
    end
  end

  def s_client(server, *words)
    out, = Open3.capture2e("openssl", "s_client", "-connect", "127.0.0.1:#{server.port}", "-ign_eof", *words,
                           stdin_data: "GET / HTTP/1.0\r\n\r\n", chdir: @folder)
    out
  end
end
