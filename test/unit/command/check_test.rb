# frozen_string_literal: true

# `rondo check` line by line.
# SPDX-License-Identifier: MIT

require "test_helper"
require "socket"
require "stringio"
require "support/certificates"
require "tmpdir"
require "rondo/command/check"
require "rondo/config/configuration"

class CheckTest < Minitest::Test
  HELLO = ->(_env) { [200, {}, []] }

  def check(**values)
    given = { app: HELLO, bind: ["tcp://127.0.0.1:0"] }.merge(values)
    settings = Rondo::Settings::Resolved.new(given.transform_values { |value| [value, "test"] })
    out = StringIO.new
    environment = ENV.to_h
    title = $PROGRAM_NAME
    code = Rondo::Check.new(settings, Rondo::Configuration.new, out: out).run
    [code, out.string.lines(chomp: true)]
  ensure
    ENV.replace(environment)
    $PROGRAM_NAME = title
  end

  def test_all_is_well
    code, lines = check
    assert_equal 0, code
    assert_match(/\Aok      configuration: none\z/, lines[0])
    assert_match(/\Aok      application: /, lines[1])
    assert_match(%r{\Aok      addresses: http://127\.0\.0\.1:\d+\z}, lines[2])
    assert_match(/\Aok      descriptors: at most \d+ connections, because the limit is \d+ open files\z/, lines[3])
    assert_match(/ at most 5 connections,/, check(max_connections: 5).last.last)
  end

  def test_nothing_stays_open
    _, lines = check
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", lines[2][/\d+\z/].to_i) }
  end

  def test_a_port_in_use
    TCPServer.open("127.0.0.1", 0) do |taken|
      code, lines = check(bind: ["tcp://127.0.0.1:#{taken.addr[1]}"])
      assert_equal 1, code
      assert_match(/\Afailed  addresses: .*already in use by process #{Process.pid}/, lines[2])
      assert_match(/\Aok      descriptors/, lines[3])
    end
  end

  def test_fibers
    assert_match(/\Aok      fibers: 3, each with a stack of .*; at most (\d+|any number)\z/, check(fibers: 3).last[1])
    refute_match(/fibers/, check.last.join)
    skip "there is no #{Rondo::FiberCount::LIMIT}" unless File.readable?(Rondo::FiberCount::LIMIT)
    code, lines = check(fibers: 1_000_000)
    assert_equal 1, code
    assert_match(/\Afailed  fibers: fibers 1000000: at most \d+ are possible here/, lines[1])
  end

  def test_more_connections_than_descriptors
    limit, = Process.getrlimit(:NOFILE)
    code, lines = check(max_connections: limit)
    assert_equal 1, code
    assert_match(/\Afailed  descriptors: max_connections #{limit} needs #{limit + 64}/, lines.last)
  end

  def test_an_application_that_is_none
    code, lines = check(app: Object.new)
    assert_equal 1, code
    assert_match(/\Afailed  application: .*call/, lines[1])
  end

  # ---- certificates ----

  def test_certificates
    in_folder do |folder|
      certificates = Certificates.new(folder)
      good, soon = certificates.pair("good"), certificates.pair("soon", days: -1..9, names: ["DNS:soon.test"])
      File.chmod(0o600, good.key)
      File.chmod(0o644, soon.key)
      code, lines = check(bind: ["ssl://127.0.0.1:0?#{good.query}&#{soon.query}"])
      assert_equal 0, code
      found = lines.grep(/certificate:/)
      assert_match(%r{\Aok      certificate: #{folder}/good.pem: localhost, 127.0.0.1; \d+ days left\z}, found[0])
      assert_match(%r{\Aok      certificate: #{folder}/soon.pem: soon.test; \d days left\z}, found[1])
      assert_match(/\Awarning certificate: the certificate in .*soon.pem expires on/, found[2])
      assert_match(/\Awarning certificate: .*soon.key.pem can be read by others/, found[3])
      assert_equal 4, found.size
      code, lines = check(bind: ["ssl://127.0.0.1:0?cert=#{good.certificate}&key=#{soon.key}"])
      assert_equal 1, code
      assert(lines.any? { |line| line.match?(/\Afailed  addresses: .*soon.key.pem is not the key of \S*good.pem\z/) })
    end
  end

  # ---- certificates that are fetched ----

  def fetching(folder, **values)
    check(bind: nil, host: "127.0.0.1", tls_domain: %w[a.test b.test], tls_storage: folder, tls_port: 0, tls_http_port: 0, **values)
  end

  def test_the_gem_is_there
    in_folder do |folder|
      code, lines = fetching(folder)
      assert_equal 0, code
      assert_includes lines, "ok      certificates to fetch: a.test, b.test"
    end
  end

  # The process that fetches is another one, and finds gems by itself.
  def test_the_gem_is_missing
    in_folder do |folder|
      before = ENV.to_h
      ENV.update("RUBYOPT" => "", "RUBYLIB" => nil, "GEM_PATH" => folder, "GEM_HOME" => folder, "BUNDLE_GEMFILE" => nil)
      code, lines = fetching(folder)
      assert_equal 1, code
      assert_includes lines, "failed  certificates to fetch: the gem acme-client is missing: run `gem install acme-client`, " \
                             "or add it to the Gemfile"
    ensure
      ENV.replace(before)
    end
  end

  def test_the_key_of_an_external_account_is_missing
    in_folder do |folder|
      code, lines = fetching(folder, tls_eab_kid: "kid", tls_eab_key_file: "#{folder}/none")
      assert_equal 1, code
      assert_includes lines, "failed  certificates to fetch: tls_eab_key_file #{folder}/none does not exist"
    end
  end

  # ---- files that a start would write ----

  def in_folder
    Dir.mktmpdir { |folder| Dir.chdir(folder) { yield File.realpath(folder) } }
  end

  def test_written_files_leave_no_trace
    in_folder do |folder|
      File.write("out.log", "what was there")
      code, lines = check(pidfile: "tmp/pids/server.pid", state_path: "state", redirect_stdout: "out.log", redirect_stderr: "/dev/null")
      assert_equal 0, code
      assert_includes lines, "ok      files to write: #{folder}/tmp/pids/server.pid, #{folder}/state, out.log, /dev/null"
      assert_equal [["out.log"], "what was there"], [Dir.children("."), File.read("out.log")]
    end
  end

  def test_a_pid_file_of_a_process_that_lives
    in_folder do |folder|
      File.write("server.pid", Process.ppid.to_s)
      code, lines = check(pidfile: "server.pid")
      assert_equal 1, code
      assert_includes lines, "failed  files to write: a server is already running: #{folder}/server.pid names process #{Process.ppid}"
    end
  end

  def test_files_that_cannot_be_written
    in_folder do |folder|
      File.write("file", "")
      { { pidfile: "file/server.pid" } => "#{folder}/file/server.pid: Not a directory",
        { pidfile: "file/a/b/server.pid" } => "#{folder}/file/a/b/server.pid: Not a directory",
        { state_path: "." } => "#{folder}: Is a directory",
        { redirect_stdout: "nowhere/out.log" } => "nowhere/out.log: No such file or directory",
        { redirect_stderr: "nowhere/err.log" } => "nowhere/err.log: No such file or directory" }.each do |settings, words|
        code, lines = check(**settings)
        assert_equal 1, code
        assert_includes lines, "failed  files to write: cannot write #{words}"
        assert_equal ["file"], Dir.children(".")
      end
    end
  end
end
