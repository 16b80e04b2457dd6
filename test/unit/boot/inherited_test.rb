# frozen_string_literal: true

# Descriptors that the environment offers, matched to addresses; and systemd's notifications.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/certificates"
require "timeout"
require "tmpdir"
require "rondo/boot/inherited"
require "rondo"

class InheritedTest < Minitest::Test
  Inherited = Rondo::Inherited

  def take(text)
    env = { Inherited::VARIABLE => text }
    Inherited.extract(env).tap { assert_empty env }
  end

  def test_nothing
    inherited = Inherited.extract({})
    refute_predicate inherited, :any?
    assert_empty inherited.descriptors_for("tcp://127.0.0.1:1")
  end

  # A socket that nobody names any more must not become one of the application of the server.
  def test_an_application_of_its_own
    sockets = Array.new(2) { TCPServer.new("127.0.0.1", 0) }
    list = sockets.map { |socket| "#{socket.fileno}=#{"app " if socket == sockets.first}http://127.0.0.1:#{socket.addr[1]}" }
    found = Rondo::Inherited.extract({ Rondo::Inherited::VARIABLE => list.join(",") })
    assert_equal ["tcp://127.0.0.1:#{sockets.last.addr[1]}"], found.uris
    assert_equal [sockets.last.fileno], found.descriptors_for("tcp://127.0.0.1:0")
    assert_equal [sockets.first.fileno], found.descriptors_for("app tcp://127.0.0.1:0")
  ensure
    sockets&.each(&:close)
  end

  def test_those_of_the_predecessor
    inherited = take("7=http://127.0.0.1:1,8=unix://@x,9~https://[::1]:2")
    assert_predicate inherited, :any?
    assert_equal ["tcp://127.0.0.1:1", "unix://@x", "ssl://[::1]:2"], inherited.uris
    assert_equal [7], inherited.descriptors_for("tcp://127.0.0.1:1?backlog=4")
    assert_equal [8], inherited.descriptors_for("unix://@x?backlog=3")
    assert_equal [9], inherited.descriptors_for("tcp://[::1]:2")
    assert_equal [true, true, false], [7, 8, 9].map { |number| inherited.own?(number) }
  end

  # If no setting says what to bind, the socket is served as before, or not at all.
  def test_a_port_with_tls_does_not_become_a_plain_one
    uri = take("9=https://127.0.0.1:1").uris.first
    assert_equal "https", Rondo::Address.scheme(uri)
    address = Rondo::Address.parse(uri)
    error = assert_raises(Rondo::AddressError) { Rondo::Address.read_tls(uri, address) }
    assert_equal "cannot listen on ssl://127.0.0.1:1: cert is missing", error.message
  end

  # Who asks on port 80 for a certificate that is no longer wanted does not get the application in plain text.
  def test_a_port_of_redirects_never_serves_the_application
    inherited = take("7=unix://@x,8+http://127.0.0.1:80")
    assert_equal ["unix://@x"], inherited.uris
    assert_empty inherited.foreign_uris
    assert inherited.own?(8)
    assert_equal [8], inherited.descriptors_for("tcp://127.0.0.1:80")
  end

  def test_each_is_given_out_once
    inherited = take("7=http://127.0.0.1:1")
    assert_equal [[7], []], Array.new(2) { inherited.descriptors_for("tcp://127.0.0.1:1") }
  end

  def test_port_0_takes_whatever_port_the_predecessor_got
    inherited = take("7=http://127.0.0.1:4711,8=http://127.0.0.1:4712")
    assert_equal [[7], [8], []], Array.new(3) { inherited.descriptors_for("tcp://127.0.0.1:0") }
    assert_empty take("7=http://127.0.0.1:4711").descriptors_for("tcp://[::1]:0")
    assert_empty take("7~http://127.0.0.1:4711").descriptors_for("tcp://127.0.0.1:0")
  end

  def test_other_addresses_get_nothing
    inherited = take("7=http://127.0.0.1:1,8=unix://@x")
    ["tcp://127.0.0.1:2", "tcp://127.0.0.2:1", "unix:///x", "unix://@y"].each do |uri|
      assert_empty inherited.descriptors_for(uri), uri
    end
  end

  def test_a_unix_socket_is_taken_while_its_file_is_there
    Dir.mktmpdir do |folder|
      path = File.join(folder, "s")
      UNIXServer.open(path) { assert_equal [7], take("7=unix://#{path}").descriptors_for("unix://#{path}?mode=0600") }
      File.unlink(path)
      assert_empty take("7=unix://#{path}").descriptors_for("unix://#{path}")
    end
  end

  def test_a_name_with_several_addresses_takes_all_of_them_or_none
    count = Rondo::Address.resolve(Rondo::Address.parse("tcp://localhost:1")).size
    list = Rondo::Address.resolve(Rondo::Address.parse("tcp://localhost:1")).each_with_index.map do |address, index|
      "#{7 + index}=#{Rondo::Address.tcp_uri(address[:host], 1)}"
    end
    assert_equal (7...(7 + count)).to_a, take(list.join(",")).descriptors_for("tcp://localhost:1")
    assert_empty take("9=tcp://127.0.0.9:1").descriptors_for("tcp://localhost:1")
  end

  def test_they_are_for_this_process_alone
    reader, writer = IO.pipe
    reader.close_on_exec = false
    take("#{reader.fileno}=tcp://127.0.0.1:1")
    assert_predicate reader, :close_on_exec?
  ensure
    [reader, writer].each { |io| io&.close }
  end

  def test_what_nobody_asked_for_is_closed
    reader, writer = IO.pipe
    writer.autoclose = false
    take("#{writer.fileno}=http://127.0.0.1:1").close_rest
    assert_nil reader.read(1)
  ensure
    reader&.close
  end

  def test_systemd_speaks_to_another_process
    env = { "LISTEN_PID" => "1", "LISTEN_FDS" => "1" }
    refute_predicate Inherited.extract(env), :any?
    assert_equal %w[LISTEN_PID LISTEN_FDS], env.keys
  end

  def test_copies_survive_exec
    TCPServer.open("127.0.0.1", 0) do |server|
      copies = Inherited.hand_on("http://x" => server.fileno).to_h
      refute_predicate copies["http://x"], :close_on_exec?
      refute_equal server.fileno, copies["http://x"].fileno
    ensure
      copies&.each_value(&:close)
    end
  end

  def test_what_started_this_process
    command = Inherited.command
    assert_operator command[:words].size, :>=, 2
    assert File.identical?(command[:folder], ".")
  end

  def test_notifications
    Dir.mktmpdir do |folder|
      path = File.join(folder, "notify")
      [path, "@rondo-test-#{Process.pid}"].each do |name|
        socket = Socket.new(:UNIX, :DGRAM)
        socket.bind(Addrinfo.unix(name.sub(/\A@/, "\0")))
        Inherited.notify("READY=1", { "NOTIFY_SOCKET" => name })
        assert_equal "READY=1", socket.recv_nonblock(100)
        Inherited.notify("READY=1", { "NOTIFY_SOCKET" => name, "PUMA_SKIP_SYSTEMD" => "1" })
        assert_equal :wait_readable, socket.recv_nonblock(100, exception: false)
      ensure
        socket&.close
      end
    end
  end

  def test_nobody_to_notify
    assert_nil Inherited.notify("READY=1", {})
    ["/nowhere/at/all", "/#{"a" * 500}", "@", "vsock:2:1234", ".", "a\nb"].each do |name|
      assert_nil Inherited.notify("READY=1", { "NOTIFY_SOCKET" => name }), name
    end
  end

  def test_somebody_who_does_not_read_is_not_waited_for
    Dir.mktmpdir do |folder|
      path = File.join(folder, "notify")
      socket = Socket.new(:UNIX, :DGRAM)
      socket.bind(Addrinfo.unix(path))
      Timeout.timeout(60) { 2000.times { Inherited.notify("STATUS=x", { "NOTIFY_SOCKET" => path }) } }
    ensure
      socket&.close
    end
  end

  # @return [Rondo::Inherited] of a process that replaces one that showed these
  def after(materials)
    io = Rondo::TLS.hand_on(materials)
    io.autoclose = false
    env = { Rondo::Inherited::CERTIFICATES => io.fileno.to_s }
    Rondo::Inherited.extract(env).tap { assert_empty env }
  end

  # Children of the next process would have the keys.
  def test_nothing_stays_open_of_certificates
    number = Rondo::TLS.seal(Marshal.dump([[[:name, "a"]]]))
    found = Rondo::Inherited.extract({ Rondo::Inherited::CERTIFICATES => number.to_s })
    assert_equal ["a"], found.instance_variable_get(:@materials).map { |material| material[:name] }
    refute_path_exists "/proc/self/fd/#{number}"
  end

  def test_programs_do_not_get_keys
    keys = Rondo::TLS::Tickets.new
    sealed = IO.for_fd(Rondo::TLS.seal("keys"))
    File.open(__FILE__) do |other|
      all = [sealed, IO.for_fd(keys.fd, autoclose: false).dup, other].each { |io| io.close_on_exec = false }
      env = { Rondo::Inherited::CERTIFICATES => all[0].fileno.to_s, Rondo::TicketKeys::VARIABLE => all[1].fileno.to_s }
      Rondo::Inherited.withhold(env)
      [other.fileno.to_s, "x", "-1", "99999"].each do |number|
        Rondo::Inherited.withhold({ Rondo::Inherited::CERTIFICATES => number })
      end
      assert_equal [true, true, false], all.map(&:close_on_exec?)
    ensure
      all&.each(&:close)
    end
  end

  # Another number of the same program may be in the environment of a child.
  def test_programs_do_not_get_sockets
    listening = TCPServer.new("127.0.0.1", 0)
    own, other = Socket.pair(:UNIX, :STREAM)
    third = own.dup
    token, into = IO.pipe
    all = [listening, own, other, third, token, into].each { |io| io.close_on_exec = false }
    Rondo::Inherited.withhold({ Rondo::Inherited::VARIABLE => "#{listening.fileno}=http://127.0.0.1:1,#{own.fileno}~http://127.0.0.1:2,99999=x",
                                "RONDO_MOLD" => "4:#{other.fileno}:1:#{Process.ppid}:1",
                                "RONDO_CONTROL_SOCKET" => "#{own.fileno},#{token.fileno}=tcp://127.0.0.1:#{into.fileno}" })
    Rondo::Inherited.withhold({ "RONDO_MOLD" => "3:#{third.fileno}:1:#{Process.pid}" })
    assert_equal [true, false, true, false, true, false], all.map(&:close_on_exec?)
  ensure
    all&.each(&:close)
  end

  def test_certificates_that_cannot_be_used_any_more
    Dir.mktmpdir do |folder|
      pair = Certificates.new(folder).pair("server")
      uri = "ssl://127.0.0.1:1?#{pair.query}"
      material = Rondo::Address.read_tls(uri, Rondo::Address.parse(uri))[:tls]
      lines = []
      assert_equal material, after([material]).read_tls(uri) { |line| lines << line }
      assert_empty lines
      File.delete(pair.key)
      assert_equal material[:certificates], after([material]).read_tls(uri) { |line| lines << line }[:certificates]
      assert_equal ["! Certificates of ssl://127.0.0.1:1 stay as they are: #{pair.key}: No such file or directory"], lines
      assert_raises(Rondo::AddressError) { after([material]).read_tls("#{uri}&ssl_ciphersuites=TLS_AES_128_GCM_SHA256") }
      assert_raises(Rondo::AddressError) { Rondo::Inherited.new([]).read_tls(uri) }
      assert_nil after([material]).read_tls("tcp://127.0.0.1:1")
    end
  end

  # Of another version, or damaged: the files are read as if there had been no process before.
  def test_certificates_that_cannot_be_understood
    whole = Marshal.dump([[[:name, "a"]]])
    [whole.sub("\x04\x08", "\x05\x00"), whole[0..-3], "", "x", Marshal.dump(5), Marshal.dump([[1]]),
     Marshal.dump([nil]), Marshal.dump(nil)].each do |bytes|
      number = Rondo::TLS.seal(bytes)
      env = { Rondo::Inherited::CERTIFICATES => number.to_s }
      assert_empty Rondo::Inherited.extract(env).instance_variable_get(:@materials), bytes.inspect
      refute_path_exists "/proc/self/fd/#{number}", bytes.inspect
    end
  end

  def test_a_fetched_certificate_whose_file_is_damaged
    Dir.mktmpdir do |folder|
      pair = Certificates.new(folder).pair("server")
      path = File.join(folder, "both.pem")
      File.write(path, File.read(pair.certificate) + File.read(pair.key))
      uri = "ssl://127.0.0.1:1?#{Rondo::TLS.query({ awaits: "files", certs: [{ cert: path, key: path }] })}"
      material = Rondo::Address.read_tls(uri, Rondo::Address.parse(uri))[:tls]
      File.write(path, "half")
      lines = []
      assert_equal material[:certificates], after([material]).read_tls(uri) { |line| lines << line }[:certificates]
      assert_equal ["! Not shown on ssl://127.0.0.1:1: #{path} has no certificate"], lines
      assert_empty Rondo::Inherited.new([]).read_tls(uri) { |line| lines << line }[:certificates]
    end
  end

  def test_certificates_in_what_is_no_sealed_file
    File.open(__FILE__) do |file|
      ["x", "-1", "99999", file.fileno.to_s].each do |number|
        assert_empty Rondo::Inherited.extract({ Rondo::Inherited::CERTIFICATES => number }).uris
      end
      refute_empty file.gets
    end
  end
end
