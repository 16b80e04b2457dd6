# frozen_string_literal: true

# Every way to the ports 80 and 443 without root that DEPLOYMENT names, with the words it names, in a network of the
# test's own: as an ordinary user, on the real ports.
# SPDX-License-Identifier: MIT

require_relative "tls_case"

class TLSPortsTest < TLSCase
  PAGE = File.read(File.join(ROOT, "docs/DEPLOYMENT.md"))
  WAYS = PAGE[/^With \[TLS\].*? without root,\s+one of:\n\n(.*?)\n\n/m, 1].scan(/`([^`]+)`/).flatten
  CAPABILITY, SYSCTL, HTTPS_SOCKET, HTTP_SOCKET, OWN, MAPPING = WAYS
  TOOLS = %w[unshare nsenter ip setpriv].freeze
  NOBODY = %w[setpriv --reuid=65534 --regid=65534 --clear-groups].freeze

  def setup
    super
    skip "the right of root to make networks is missing" unless Process.uid.zero?
    skip "#{TOOLS.join(", ")}: one of them is missing" unless TOOLS.all? { |name| found?(name) }
    File.chmod(0o755, @folder)
    File.chmod(0o644, @pair.key)
    Dir.mkdir(File.join(@folder, "state"))
    File.chown(65_534, 65_534, File.join(@folder, "state"))
  end

  def found?(name)
    system("sh", "-c", "command -v #{name}", out: File::NULL)
  end

  # A server behind other words, in a network that has only the loopback.
  # @param before [String] a command of the shell, for the network
  # @param prefix [Array<String>] words before those of the server
  def apart(prefix, *args, binds: [], before: "true")
    words = ["unshare", "--net", "sh", "-c", "ip link set lo up && #{before} && exec \"$@\"", "sh", *prefix]
    behind = Class.new(Server) { define_method(:command_line) { |*all| [*words, *super(*all)] } }
    behind.new(nil, binds: binds, args: args, env: BLANK, spawn: { chdir: @folder }).tap { |server| @servers << server }
  end

  def inside(server, *words)
    run_command("nsenter", "--net=/proc/#{server.pid}/ns/net", *words)
  end

  def get(server, url, *words)
    inside(server, "curl", "-sS", "--max-time", PATIENCE.to_s, "--cacert", @certificates.authority, *words, url)
  end

  def assert_redirected(server, port)
    result = get(server, "http://127.0.0.1:#{port}/a", "-i", "-H", "host: app.example.com")
    assert_match(%r{\AHTTP/1\.1 308 .*^location: https://app\.example\.com/a\r}m, result.out, result.err)
  end

  # Nobody answers there: the network has nobody else.
  def fetching
    ["--tls-storage", "state", "--tls-directory", "https://127.0.0.1:1/"]
  end

  def test_every_way_is_one_of_these
    assert_equal [/\AAmbientCapabilities=CAP_\w+\z/, /\Asysctl net\.ipv4\.\w+=\d+\z/, /\AListenStream=\d+\z/,
                  /\AListenStream=\d+\z/, /\Arondo --cert .*\z/, /\Arondo --tls-domain .*\z/].zip(WAYS).map { |form, way| way[form] }, WAYS
  end

  # Another worker, and the next program, have it as well.
  def test_the_capability
    name = "+#{CAPABILITY[/CAP_(\w+)/, 1].downcase}"
    server = apart([*NOBODY, "--inh-caps=#{name}", "--ambient-caps=#{name}"], "-w", "1",
                   binds: ["ssl://127.0.0.1:443?#{@pair.query}"])
    server.wait_for_log(/booted in/)
    server.signal("TTIN")
    server.wait_for_log(/Worker 1 .*booted in/)
    server.signal("USR2")
    server.wait_for_log(/Restarting.*booted in/m)
    assert_match(/\A\d+\z/, get(server, "https://localhost/pid").out)
  end

  def test_a_lower_limit
    place, value = SYSCTL.delete_prefix("sysctl ").split("=")
    server = apart(NOBODY, binds: ["ssl://127.0.0.1:443?#{@pair.query}", "tcp://127.0.0.1:#{value}"],
                           before: "echo #{value} >/proc/sys/#{place.tr(".", "/")}")
    assert_equal "https on 443", get(server, "https://localhost/").out
    assert_equal "http  80", get(server, "http://localhost/").out
  end

  # The program waits for a client before it becomes the server.
  def activated(listens, *args)
    skip "systemd-socket-activate is missing" unless found?("systemd-socket-activate")
    listens = listens.map { |line| line[/\d+/] }
    passed = %w[ASAN_OPTIONS LD_PRELOAD RUBYLIB RUBYOPT BUNDLE_GEMFILE GEM_HOME GEM_PATH HOME].select { |name| ENV.key?(name) }
    words = [*listens.flat_map { |port| ["-l", port] }, *passed.flat_map { |name| ["-E", name] }]
    server = apart(["systemd-socket-activate", *words, *NOBODY], *args)
    listens.each { |port| server.wait_for_log(/^Listening on .*:#{port} /) }
    server
  end

  def test_sockets_of_systemd
    server = activated([HTTPS_SOCKET, HTTP_SOCKET], "--tls-domain", "app.example.com", *fetching)
    assert_redirected(server, 80)
    server.wait_for_log(/Use Ctrl-C to stop/)
    assert_match(%r{\* Listening on https://\[::\]:443\n.*\* Redirecting from http://\[::\]:80 to https$}, server.log)
  end

  def test_sockets_of_systemd_and_certificates_of_ones_own
    File.rename(@pair.certificate, File.join(@folder, "cert.pem"))
    File.rename(@pair.key, File.join(@folder, "key.pem"))
    server = activated([HTTPS_SOCKET], *OWN.delete_prefix("rondo ").split)
    assert_equal "https on 443", get(server, "https://localhost/").out
    refute_match(/:9292/, server.log)
  end

  def test_a_mapping_of_ports
    server = apart(NOBODY, *MAPPING.delete_prefix("rondo ").split, *fetching)
    server.wait_for_log(/Use Ctrl-C to stop/)
    assert_redirected(server, 8080)
    assert_match(%r{Listening on https://\S+:8443$}, server.log)
  end
end
