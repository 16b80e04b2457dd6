# frozen_string_literal: true

# The words of ssl:// addresses, what is read for them, and what the core says of it.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "support/certificates"
require "tmpdir"

class TLSTest < Minitest::Test
  TLS = Rondo::TLS

  def setup
    @folder = Dir.mktmpdir
    @certificates = Certificates.new(@folder)
    @pair = @certificates.pair("server")
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  # @return [String] the message
  def refused(query)
    server = Rondo::Server.new(->(_env) {})
    error = assert_raises(Rondo::AddressError) { server.listen("ssl://127.0.0.1:0?#{query}") }
    assert_equal 1, error.message.lines.size
    assert error.message.start_with?("cannot listen on ssl://127.0.0.1:0: "), error.message
    error.message.delete_prefix("cannot listen on ssl://127.0.0.1:0: ").gsub("#{@folder}/", "")
  end

  def listens(query)
    server = Rondo::Server.new(->(_env) {})
    server.listen("ssl://127.0.0.1:0?#{query}")
  ensure
    server.stop(force: true)
    server.run
  end

  def test_a_pair
    assert_match(%r{\Ahttps://127\.0\.0\.1:\d+\z}, listens(@pair.query))
  end

  def test_several
    other = @certificates.pair("other", names: ["DNS:other.test"], key: OpenSSL::PKey::RSA.new(2048))
    listens("#{@pair.query}&#{other.query}")
  end

  def test_a_key_with_a_password
    locked = @certificates.pair("locked", password: "secret")
    assert_equal "the key in locked.key.pem is encrypted, and there is no password", refused(locked.query)
    assert_equal "the password does not open the key in locked.key.pem",
                 refused("#{locked.query}&key_password_command=echo%20wrong")
    assert_equal "key_password_command failed", refused("#{locked.query}&key_password_command=false")
    assert_equal "key_password_command: No such file or directory",
                 refused("#{locked.query}&key_password_command=/no/such")
    listens("#{locked.query}&key_password_command=echo%20secret")
  end

  def test_a_password_command_that_does_not_end
    error = assert_raises(TLS::Refused) { TLS.send(:password, "sleep 1000 & echo $! >#{@folder}/pid; wait", 2) }
    assert_equal "key_password_command takes longer than 2 s", error.message
    assert_raises(Errno::ESRCH) { loop { Process.kill(0, Integer(File.read("#{@folder}/pid"))) && Thread.pass } }
    error = assert_raises(TLS::Refused) { TLS.send(:password, "exec yes") }
    assert_equal "key_password_command prints more than 4096 bytes", error.message
  end

  def test_a_password_command_that_closes_its_output
    error = assert_raises(TLS::Refused) { TLS.send(:password, "echo secret; exec >&-; exec sleep 1000", 0.2) }
    assert_equal "key_password_command takes longer than 0.2 s", error.message
    error = assert_raises(TLS::Refused) { TLS.send(:password, "head -c 5000 /dev/zero; exec sleep 1000", 20) }
    assert_equal "key_password_command prints more than 4096 bytes", error.message
  end

  # A master waits for all of its children, on another thread.
  def test_somebody_else_has_the_status_of_the_password_command
    child = fork do
      ended = Queue.new
      trap("CLD") { ended << true }
      Thread.new { wait_for_all while ended.pop }
      exit!(Array.new(30) { TLS.send(:password, "echo secret") }.uniq == %w[secret])
    end
    assert_predicate Process.wait2(child).last, :success?
  end

  def wait_for_all
    nil while Process.wait2(-1, Process::WNOHANG)
  rescue Errno::ECHILD
    nil
  end

  def test_what_cannot_be_used
    File.write(File.join(@folder, "text"), "text")
    File.write(File.join(@folder, "trusted"), File.read(@pair.certificate).gsub("BEGIN", "BEGIN TRUSTED").gsub("END", "END TRUSTED"))
    late = @certificates.pair("late", days: -9..-2)
    early = @certificates.pair("early", days: 2..9)
    nameless = @certificates.pair("nameless", names: [], subject: nil)
    encrypted = @certificates.pair("locked", password: "secret")
    orders = write_chains
    {
      "cert=#{@folder}/none&key=#{@pair.key}" => "none: No such file or directory",
      "cert=#{@folder}&key=#{@pair.key}" => /: Is a directory\z/,
      "cert=#{@folder}/text&key=#{@pair.key}" => "text has no certificate",
      "cert=#{@folder}/trusted&key=#{@pair.key}" => "trusted has no certificate",
      "cert=#{@pair.certificate}&key=#{@folder}/text" => "text has no private key",
      "cert=#{@certificates.authority}&key=#{@pair.key}" => "server.key.pem is not the key of authority.pem",
      late.query => /\Athe certificate in late.pem expired on \d{4}-\d\d-\d\d\z/,
      early.query => /\Athe certificate in early.pem is not valid before \d{4}-\d\d-\d\d\z/,
      nameless.query => "the certificate in nameless.pem names no host",
      encrypted.query => "the key in locked.key.pem is encrypted, and there is no password",
      "cert=#{@pair.certificate}" => "key is missing",
      "key=#{@pair.key}" => "cert is missing",
      **orders.to_h do |name|
        ["cert=#{@folder}/#{name}&key=#{@pair.key}",
         "#{name} has its certificates in the wrong order: the server's is first, and each is signed by the next one"]
      end,
      "#{@pair.query}&keystore=a.jks" => "keystore is JRuby's; give cert and key as PEM files",
      "#{@pair.query}&verify_mode=always" => 'verify_mode cannot be "always"; none, peer or force_peer',
      "#{@pair.query}&verify_mode=peer" => "verify_mode peer needs ca",
      "#{@pair.query}&verify_mode=peer&ca=#{@folder}/none" => "none: No such file or directory",
      "#{@pair.query}&verify_mode=peer&ca=#{@pair.certificate}" => "server.pem: no certificate in it is that of an authority",
      "#{@pair.query}&ssl_cipher_filter=NONE" => "ssl_cipher_filter: no cipher match",
      "#{@pair.query}&ssl_ciphersuites=NONE" => "ssl_ciphersuites: no cipher match",
      "#{@pair.query}&alpn=a,,b" => "alpn must be 1 to 16 names with commas between them, each of up to 255 bytes",
      "#{@pair.query}&alpn=" => /\Aalpn must be 1 to 16 names/,
      "#{@pair.query}&alpn=#{"a" * 256}" => /\Aalpn must be 1 to 16 names/,
      "#{@pair.query}&alpn=h2" => "alpn is for listen_raw: this listener speaks HTTP",
      "#{@pair.query}&verify_mode=peer&ca=#{@folder}/text" => "text: it has no certificate",
      "#{@pair.query}&verify_mode=peer&ca=#{@certificates.authority}&verification_flags=ALL" =>
        "verification_flags: unknown flag ALL"
    }.each { |query, message| assert_operator message, :===, refused(query), query }
  end

  # Each of Puma's words is obeyed, has nothing to change, or is refused.
  def test_every_word_of_puma
    given = { cert: @pair.certificate, key: @pair.key, ca: @certificates.authority, verify_mode: "peer", backlog: 5,
              verification_flags: %w[CRL_CHECK PARTIAL_CHAIN], ssl_cipher_filter: "ECDHE-ECDSA-AES128-GCM-SHA256",
              ssl_ciphersuites: "TLS_AES_256_GCM_SHA384", low_latency: false, no_tlsv1: true, no_tlsv1_1: true,
              reuse: { size: 2000, timeout: 20 }, key_password_command: "echo x" }
    address = Rondo::Address.parse("ssl://127.0.0.1:0?#{TLS.query(given)}")
    assert_equal [5, false], address.values_at(:backlog, :low_latency)
    spec = address[:tls]
    assert_equal [[[given[:cert], given[:key], "echo x"]], given[:ca], :peer, "CRL_CHECK,PARTIAL_CHAIN",
                  given[:ssl_cipher_filter], given[:ssl_ciphersuites]],
                 [spec.pairs.map(&:to_a), spec.ca, spec.verify_mode, spec.verification_flags, spec.ciphers, spec.ciphersuites]
    listens(TLS.query(given))
    %i[keystore keystore_pass keystore-type truststore truststore-pass cipher_suites protocols ssl_cipher_list].each do |word|
      assert_match(/\A#{word} is JRuby's/, refused(TLS.query(given.merge(word => "x"))))
    end
    assert_equal "unknown option no_tlsv1_2", refused(TLS.query(given.merge(no_tlsv1_2: true)))
    assert_equal "unknown option crl", refused(TLS.query(given.merge(crl: "lists.pem")))
  end

  # @return [Array<String>] names of files whose certificates are in the wrong order
  def write_chains
    middle = @certificates.middle("middle")
    own, between, root = [middle.pair("leaf", key: OpenSSL::PKey.read(File.read(@pair.key))).certificate, middle.authority,
                          @certificates.authority].map { |path| File.read(path) }
    { "first" => [between, own], "second" => [own, root, between], "right" => [own, between, root] }.each do |name, pems|
      File.write(File.join(@folder, name), pems.join)
    end
    listens("cert=#{@folder}/right&key=#{@pair.key}")
    %w[first second]
  end

  def test_a_worker_shows_what_has_expired_since
    late = @certificates.pair("late", days: -9..-2)
    material = TLS::Material.new.update(address: "a", certificates: [{ certificate: File.read(late.certificate),
                                                                       key: File.read(late.key) }])
    server = Rondo::Server.new(->(_env) {})
    handed = TLS.take(TLS.hand_on([material])).first
    [[material, Rondo::AddressError], [handed, nil]].each do |tls, error|
      socket = TCPServer.new("127.0.0.1", 0)
      socket.autoclose = false
      listen = -> { server.listen_fd(socket.fileno, scheme: "https", tls: tls) }
      error ? assert_raises(error, &listen) : assert_match(/\Ahttps:/, listen.call)
    end
  ensure
    server.stop(force: true)
    server.run
  end

  def test_ssl_bind_in_words_of_an_address
    query = TLS.query({ cert: "/a b&c.pem", key: "/k.pem", verification_flags: %w[CRL_CHECK PARTIAL_CHAIN],
                        backlog: 9, certs: [{ cert: "/d", key: "/e" }] })
    address = Rondo::Address.parse("ssl://127.0.0.1:1?#{query}")
    assert_equal 9, address[:backlog]
    assert_equal [["/a b&c.pem", "/k.pem", nil], ["/d", "/e", nil]], address[:tls].pairs.map(&:to_a)
    assert_equal "CRL_CHECK,PARTIAL_CHAIN", address[:tls].verification_flags
    assert_equal "cert=/c&key=/k", TLS.query({ cert: "/c", key: "/k", ca: nil, verify_mode: nil, certs: [{ cert: nil }] })
    assert_raises(TLS::Refused) { TLS.query({ certs: "/d" }) }
  end

  def test_pem_in_a_configuration_file
    pem = { cert_pem: File.read(@pair.certificate), key_pem: File.read(@pair.key) }
    query = TLS.query(pem)
    assert_equal query, TLS.query(pem) # read again
    refute_includes query, pem[:key_pem].lines[1].chomp
    listens(query)
    assert_equal "key_pem has no private key", refused(TLS.query({ **pem, key_pem: "x" }))
    assert_equal "pem:99 is not known", refused("cert=pem:99&key=pem:99")
  end

  # ---- files that may be missing ----

  # @return [Array(TLS::Material, Array<String>)] what is shown, and what is said
  def awaited(*files)
    query = TLS.query({ awaits: "files", certs: files.map { |path| { cert: path, key: path } } })
    said = []
    [TLS.read(Rondo::Address.parse("ssl://127.0.0.1:0?#{query}")[:tls], "ssl://a:1") { |line| said << line }, said]
  end

  def one_file(name, **options)
    pair = @certificates.pair(name, **options)
    File.join(@folder, "#{name}.both.pem").tap { |path| File.write(path, File.read(pair.certificate) + File.read(pair.key)) }
  end

  # A server that was off for long starts, and so does one whose clock is late.
  def test_awaited_certificates_that_are_not_valid_now_are_shown
    old, early = one_file("old", days: -9..-2), one_file("early", days: 2..9)
    material, said = awaited(old, early)
    assert_equal [old, early], material[:certificates].map { |pair| pair[:certificate_name] }
    assert_equal 2, TLS.check(material).size
    assert_empty said
  end

  def test_awaited_files_that_are_damaged_hold_up_nobody
    good, torn, empty = one_file("good"), one_file("torn"), File.join(@folder, "empty")
    File.write(torn, File.read(torn)[0..-60])
    File.write(empty, "")
    material, said = awaited(File.join(@folder, "none"), torn, good, empty, @folder)
    assert_equal [good], material[:certificates].map { |pair| pair[:certificate_name] }
    assert_match(/\A! Not shown on ssl:..a:1: #{torn} /, said[0])
    assert_equal ["! Not shown on ssl://a:1: #{empty} has no certificate", "! Not shown on ssl://a:1: #{@folder}: Is a directory"],
                 said.drop(1)
  end

  def test_what_was_shown_of_a_damaged_file_stays
    files = [one_file("first"), one_file("second")]
    before, = awaited(*files)
    File.write(files[0], "")
    File.write(files[1], File.read(one_file("third")))
    found, = awaited(*files)
    shown = TLS.carry_over(found, before)
    assert_equal files, shown[:certificates].map { |pair| pair[:certificate_name] }
    assert_equal before[:certificates][0], shown[:certificates][0]
    assert_equal File.read(files[1]), shown[:certificates][1][:certificate]
    assert_equal "#<Rondo::TLS::Material>", shown.inspect
    assert_same found, TLS.carry_over(found, nil)
  end

  def test_what_was_read_is_not_shown
    material = Rondo::Address.read_tls("ssl://127.0.0.1:0", Rondo::Address.parse("ssl://127.0.0.1:0?#{@pair.query}"))[:tls]
    assert_equal "#<Rondo::TLS::Material>", material.inspect
    assert_equal "#<Rondo::TLS::Material>", material.to_s
  end

  def test_handing_on
    material = TLS::Material.new.update(certificates: [{ key: "\x00\xff".b }])
    assert_nil TLS.hand_on([nil])
    io = TLS.hand_on([nil, material])
    assert_predicate io, :close_on_exec?
    assert_raises(SystemCallError) { File.open("/proc/self/fd/#{io.fileno}", "r+") { |file| file.write("x") } }
    assert_equal [nil, material.merge(checked: true)], TLS.take(io)
    assert_predicate io, :closed?
  end
end
