# frozen_string_literal: true

# The command line as a user sees it: what it prints, where, and how it ends.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "support/raw_client"
require "yaml"

class CliTest < ShellCase
  # ---- wrong words ----

  def test_unknown_options_name_the_nearest_one
    assert_complaint 2, /invalid option --prot; did you mean --port\?/, rondo("--prot", "1")
    assert_complaint 2, /--thread.*did you mean --threads\?/, rondo("--thread=3")
    assert_complaint 2, /-Z/, rondo("-Z")
  end

  def test_bytes_that_are_no_text_and_terminal_sequences
    assert_complaint 2, /invalid option/, rondo("--\xFF")
    result = rondo("--a\e[31mb")
    assert_complaint 2, /invalid option/, result
    refute_includes result.err, "\e"
  end

  def test_missing_and_wrong_arguments
    assert_complaint 2, /-p|--port/, rondo("-p")
    assert_complaint 2, /port must be a number.*"http"/, rondo("-p", "http")
    assert_complaint 2, /threads/, rondo("-t", "5:1")
    assert_complaint 2, /threads/, rondo("-t", "many")
    assert_complaint 2, /workers/, rondo("-w", "few")
    assert_complaint 2, /size/, rondo("-maxbd", "huge")
    assert_complaint 2, /seconds/, rondo("-k", "soon")
  end

  def test_options_of_a_later_version
    assert_complaint 2, /not in this version/, rondo("-ping", "5")
    assert_complaint 2, /not in this version/, rondo("-maxms", "5")
  end

  def test_two_files
    assert_complaint 2, /too many arguments: a\.ru b\.ru/, rondo("a.ru", "b.ru")
  end

  # ---- words that only print ----

  def test_version
    %w[-V --version].each do |word|
      result = rondo(word)
      assert_match(/\Arondo \d+\.\d+\.\d+ \(ruby #{RUBY_VERSION}/, result.out)
      assert_match(/epoll|poll|kqueue/, result.out)
      assert_equal [0, ""], [result.code, result.err]
    end
  end

  def test_words_that_people_try_first
    assert_equal rondo("--version").out, rondo("version").out
    assert_equal rondo("--help").out, rondo("help").out
    write "config.ru", HELLO
    assert_equal "hello", get(start("start")).body
    assert_equal "hello", get(start("start", "config.ru")).body
    write "start.ru", HELLO.sub("hello", "a file of that name")
    assert_equal "a file of that name", get(start("start")).body
  end

  # Before the lines at boot.
  def test_what_cannot_start_is_said_first
    write "config.ru", "warn 'loaded'\n#{HELLO}"
    { %w[strat] => /no application: strat does not exist in .*; did you mean start\?$/,
      %w[-b foo:bar] => /cannot listen on foo:bar: expected/,
      %w[-e production -b ssl://x:1] => /cannot listen on ssl:..x:1: cert is missing/ }.each do |words, line|
      [[], %w[-w 1]].each do |more|
        result = rondo(*more, *words)
        assert_complaint 1, line, result
        assert_equal 1, result.err.lines.size, result.err
      end
    end
    assert_complaint 2, /max_threads 2000 is not between 1 and 1024/, rondo("-t", "1:2000")
  end

  def test_options_of_http2_out_of_range
    write "config.ru", HELLO
    { "http2_seats 0" => "is not between 1 and 1000", "proxy_seats 1001" => "is not between 0 and 1000",
      "max_streams 0" => "is not between 1 and 1000000", "seat_patience_ms 0" => "is not between 1 and 86400000",
      "http2 2" => "must be true or false, not 2", "http2_websocket 'never'" => 'must be true or false, not "never"',
      "http2_seats 'six'" => 'must be a number \(count\), not "six"' }.each do |verb, words|
      write "settings.rb", verb
      result = rondo("-C", "settings.rb")
      assert_complaint 1, /\Arondo: settings\.rb:1: #{verb[/\w+/]}.* #{words}/, result
      assert_equal 1, result.err.lines.size, result.err
    end
  end

  def test_help_has_groups_and_defaults_and_fits_a_screen
    result = rondo("--help")
    assert_equal [0, ""], [result.code, result.err]
    assert_match(/^Where:$/, result.out)
    (Rondo::Application::COMMANDS - %w[start server]).each { |name| assert_match(/\b#{name}\b/, result.out.lines.first) }
    assert_includes result.out, "9292"
    assert_operator result.out.lines.map(&:chomp).map(&:size).max, :<=, 100
    assert_operator result.out.lines.size, :<, 60
    assert_includes result.out, "--tls-domain"
    assert_includes rondo("cert", "--help").out, "--tls-eab-kid ID"
  end

  def test_help_of_a_command
    %w[bench cert check completion ctl top].each do |command|
      assert_equal rondo(command, "--help").out, rondo("help", command).out
    end
    assert_includes rondo("help", "bench").out, "Usage: rondo bench"
    assert_equal rondo("node", "--help").err, rondo("help", "node").err # the gem rondo-node is not there
    result = rondo("help", "bensh")
    assert_equal [2, "", "rondo: there is no command bensh; did you mean bench?\n"], [result.code, result.out, result.err]
    assert_equal 2, rondo("help", "bench", "top").code
    assert_equal rondo("--version").out, rondo("help", "--version").out
  end

  def test_requiring_the_library_reads_no_command_line
    script = "ARGV.replace(%w[--nonsense -p x]); require 'rondo'; p ARGV, Signal.trap('INT', 'DEFAULT')"
    result = run_command(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-e", script)
    assert_equal ["[\"--nonsense\", \"-p\", \"x\"]\n\"DEFAULT\"\n", 0], [result.out, result.code]
  end

  # ---- the application ----

  def test_no_application
    assert_complaint 1, /no application: config\.ru does not exist/, rondo("-q")
    assert_complaint 1, /no application: shop does not exist/, rondo("-q", "shop")
  end

  def test_more_fibers_than_the_system_holds
    require "rondo/config/fiber_count"
    skip "there is no #{Rondo::FiberCount::LIMIT}" unless File.readable?(Rondo::FiberCount::LIMIT)
    write "config.ru", "warn 'loaded'\n#{HELLO}"
    [[], %w[-w 1]].each do |words|
      result = rondo("--fibers", "1000000", *words)
      assert_complaint 1, /fibers 1000000: at most \d+ are possible here, because .*; sysctl vm\.max_map_count=\d+ allows 1000000$/, result
      refute_includes result.err, "loaded"
    end
  end

  def test_options_that_are_none_are_said_in_the_same_words
    { [] => 2, %w[init] => 2, %w[check] => 2, %w[cert renew] => 2, %w[bench] => 2, %w[ctl] => 1, %w[top] => 1 }.each do |words, code|
      result = rondo(*words, "--hlep")
      assert_equal [code, "rondo: invalid option --hlep; did you mean --help?\n"], [result.code, result.err], words
      assert_match(/\Arondo: invalid option --\S+\n\z/, rondo(*words, "--\xFF").err)
    end
    assert_match(/did you mean --full\?$/, rondo("init", "--ful").err)
  end

  def test_a_command_that_is_none
    assert_complaint 1, /no application: cehck does not exist in .*; did you mean check\?$/, rondo("cehck")
    require "rondo/boot/application"
    require "rondo/command/cli"
    assert_equal Rondo::CLI::SUBCOMMANDS + Rondo::CLI::TOOLS.keys + Rondo::CLI::TRIED + %w[node], Rondo::Application::COMMANDS
  end

  def test_a_folder_is_no_application
    Dir.mkdir(File.join(@folder, "shop"))
    assert_complaint 1, /no application: shop is a folder, not a file such as config\.ru$/, rondo("-q", "shop")
  end

  def test_the_application_is_config_ru_or_named_with_or_without_its_ending
    write "config.ru", HELLO
    write "shop.ru", HELLO.sub("hello", "shop")
    { [] => "hello", ["shop"] => "shop", ["shop.ru"] => "shop" }.each do |words, body|
      server = start(*words)
      assert_equal body, get(server).body
      assert server.stop.success?
    end
  end

  def test_an_application_that_raises_at_boot
    write "config.ru", "\nraise 'no database'\n"
    assert_not_loaded(/config\.ru:2: no database \(RuntimeError\), at `raise 'no database'`/, rondo("-q"))
    result = rondo("-q", "--debug")
    assert_not_loaded(/config\.ru:2: no database .*/, result)
    assert_match(%r{^    .*lib/rondo/command/cli\.rb}, result.err)
  end

  def test_an_application_that_raises_in_a_file_of_its_own
    write "config.ru", "\nrequire_relative 'config/environment'\n"
    write "config/environment.rb", "\n  Stripe.api_key = 1\n"
    assert_not_loaded(%r{config/environment\.rb:2: uninitialized constant Stripe \(NameError\), at `Stripe\.api_key = 1`},
                      rondo("-q"))
  end

  # ---- an application that ends the boot ----

  ENDS = { "raise Exception, 'no luck'" => /:2: no luck \(Exception\)/,
           "def deeper = deeper; deeper" => /:2: stack level too deep \(SystemStackError\)/,
           "exit 0" => /:2: it called exit at boot \(status 0\)/,
           "exit 3" => /:2: it called exit at boot \(status 3\)/ }.freeze

  def test_whatever_ends_the_boot_is_one_line
    ENDS.each do |line, words|
      write "config.ru", "\n#{line}\n"
      expected = /config\.ru#{words}, at `#{Regexp.escape(line)}`/
      assert_not_loaded expected, rondo("-q")
      result = rondo("check", "-b", "tcp://127.0.0.1:0")
      assert_match(/^failed  application: .*#{expected}$/, result.out)
      assert_match(/^    \S*builder\.rb:\d+:in .*parse_file'$/, result.err)
      assert_equal 1, result.code
    end
  end

  def test_whatever_ends_the_configuration_is_one_line
    ENDS.each do |line, words|
      write "config/rondo.rb", "\n#{line}\n"
      assert_complaint 1, /rondo\.rb#{words}$/, rondo("-q")
      assert_complaint 1, /rondo\.rb#{words}$/, rondo("check")
    end
  end

  def test_a_signal_ends_the_boot_as_ever
    write "config.ru", "Process.kill(:TERM, Process.pid)\nsleep\n"
    result = rondo("-q")
    assert_nil result.code, result.err # its own status, of the signal
    write "config/rondo.rb", "raise Interrupt\n"
    assert_equal [130, ""], rondo("-q").to_h.values_at(:code, :err)
  end

  def test_an_application_with_a_syntax_error
    write "config.ru", "\n\nrun ->(env) { [200, {}, []\n"
    assert_not_loaded(/config\.ru:\d.*/, rondo("-q"))
  end

  def test_an_application_that_misses_a_library
    write "config.ru", "require 'no/such/library'\n"
    assert_not_loaded %r{config\.ru:1:.*no/such/library.*}, rondo("-q")
  end

  # ---- addresses ----

  def test_a_port_in_use_names_its_holder
    write "config.ru", HELLO
    TCPServer.open("127.0.0.1", 0) do |taken|
      result = rondo("-q", "-b", "tcp://127.0.0.1:#{taken.addr[1]}")
      assert_complaint 1, /:#{taken.addr[1]}: address already in use by process #{Process.pid} \(/, result
    end
  end

  def test_addresses_that_are_none
    write "config.ru", HELLO
    assert_complaint 1, /nonsense/, rondo("-q", "-b", "nonsense")
    assert_complaint 1, /cert is missing/, rondo("-q", "-e", "production", "-b", "ssl://127.0.0.1:0")
    assert_complaint 1, %r{/no/such/folder/s\.sock}, rondo("-q", "-b", "unix:///no/such/folder/s.sock")
    assert_complaint 1, /unknown option colour/, rondo("-q", "-b", "tcp://127.0.0.1:0?colour=red")
  end

  def test_what_there_is_no_permission_for
    write "config.ru", HELLO
    FileUtils.mkdir(File.join(@folder, "closed"), mode: 0o500)
    closed = write("closed.rb", "")
    File.chmod(0o000, closed)
    File.chmod(0o755, @folder)
    assert_complaint 1, /permission denied/i, powerless("-q", "-b", "unix://#{@folder}/closed/s.sock")
    assert_complaint 1, /cannot read .*closed\.rb: Permission denied/, powerless("-q", "-C", closed)
    assert_complaint 1, /cannot write .*server\.pid: Permission denied/,
                     powerless("-q", "-b", "tcp://127.0.0.1:0", "--pidfile", "closed/server.pid")
  end

  def test_addresses_without_a_scheme
    write "config.ru", HELLO
    HeldPort.open do |port|
      server = start("-p", port.to_s, binds: ["127.0.0.1", "./s.sock", "127.0.0.2:0"])
      assert_equal ["http://127.0.0.1:#{port}", "http://127.0.0.2", "unix://#{@folder}/s.sock"],
                   server.urls.uniq.map { |url| url.sub(/(127.0.0.2):\d+\z/, '\1') }.sort
      server.urls.uniq.each { |url| RawClient.open(url) { |client| assert_equal "hello", client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").body } }
    end
  end

  def test_several_addresses
    write "config.ru", HELLO
    path = File.join(@folder, "s.sock")
    server = start(binds: ["tcp://127.0.0.1:0", "unix://#{path}?mode=0600", "tcp://127.0.0.1:0"])
    assert_equal 3, server.urls.uniq.size
    assert_equal 0o600, File.stat(path).mode & 0o777
    assert server.stop.success?
    refute File.exist?(path), "the socket file is left over"
  end

  # ---- the lines at boot ----

  def test_the_boot_block_says_what_was_found_and_why
    write "shop.ru", HELLO
    write "config/rondo.rb", "tag 'x'\nmax_body_bytes 10\n"
    server = start("-e", "staging", "-k", "9", "shop", env: { "RAILS_MAX_THREADS" => "7" })
    server.wait_for_log(/Use Ctrl-C to stop/)
    [/^Rondo starting in single mode\.\.\.$/, /^\* Rondo version: \d/, /^\*  Ruby version: ruby/, /^\*  Min threads: /,
     /^\*  Max threads: .*7.*RAILS_MAX_THREADS/, /^\*  Environment: staging \(command line\)$/,
     /^\* +Setting: max_body_bytes 10 \(rondo\.rb\)$/, /^\* +Setting: keep_alive_timeout_ms 9000 \(command line\)$/,
     /^\* +PID: #{server.pid}$/, %r{^\* +Config: config/rondo\.rb$}, /^\* +App: shop/,
     /^\* Listening on #{server.url}$/].each { |line| assert_match line, server.log }
  end

  def test_what_is_missing_is_said
    write "config.ru", HELLO
    server = start
    server.wait_for_log(/Use Ctrl-C to stop/)
    assert_match(/^\* +Workers: 0 \(default\)$/, server.log)
  end

  def test_options_that_only_puma_needs_are_said
    write "config.ru", HELLO
    server = start("-R", "bundle exec puma", "--prune-bundler", "--extra-runtime-dependencies", "a,b",
                   "--plugin", "tmp_restart", "config.ru")
    server.wait_for_log(/Use Ctrl-C to stop/)
    %w[prune-bundler extra-runtime-dependencies].each { |name| assert_match(/^! --#{name}: /, server.log) }
    assert_match(/^! --restart-cmd: a restart executes the program that runs, and not Puma \(bundle exec puma\)$/, server.log)
    refute_match(/tmp_restart/, server.log)
  end

  def test_the_environment_of_the_application
    write "config.ru", "run ->(env) { [200, {}, [ENV.values_at('RACK_ENV', 'RAILS_ENV').inspect]] }\n"
    assert_equal '["staging", "staging"]', get(start("-e", "staging")).body
    assert_equal '["test", "test"]', get(start(env: { "APP_ENV" => "test", "RACK_ENV" => "development" })).body
    assert_equal '["development", "development"]', get(start).body
  end

  # ---- the output of lines ----

  def test_quiet_and_silent
    write "config.ru", HELLO
    HeldPort.open do |port|
      %w[-q -s].each do |word|
        server = start(word, "-b", "tcp://127.0.0.1:#{port}", binds: [])
        eventually("an answer") { Net::HTTP.get(URI("http://127.0.0.1:#{port}/")) rescue false } # by then it takes signals
        assert server.stop.success?
        assert_empty server.log
      end
    end
  end

  def test_boot_lines_and_requests_go_to_standard_output_and_errors_to_standard_error
    write "config.ru", HELLO
    server = start("-v", "--prune-bundler", spawn: { chdir: @folder, err: File.join(@folder, "err") })
    assert_equal "200", get(server, "/x%1B[31m?q=1").code
    assert_equal "400", get(server, "/refused", "User-Agent" => "a\e[31mb").code
    server.stop
    assert_match(%r{"GET /x%1B\[31m\?q=1 HTTP/1\.1" 200}, server.log)
    assert_match(/^- Goodbye!$/, server.log)
    refute_match(/\e|^!/, server.log)
    assert_match(/\A! --prune-bundler: .*\nRefused a request of 127\.0\.0\.1: .*\n\z/, read("err"))
    refute_includes read("err"), "\e"
  end

  def test_output_to_files
    write "config.ru", "warn 'loaded'\n#{HELLO}"
    write "log/err", "before\n"
    server = start("--redirect-stdout", "log/out", "--redirect-stderr", "log/err", "--redirect-append", "-v",
                   "-b", "tcp://127.0.0.1:0", binds: [])
    line = eventually("the server") { /Listening on \S+:(\d+)/.match(File.exist?(File.join(@folder, "log/out")) ? read("log/out") : "") }
    assert_equal "hello", Net::HTTP.get(URI("http://127.0.0.1:#{line[1]}/in-file"))
    server.stop
    assert_match(%r{GET /in-file.*Goodbye}m, read("log/out"))
    assert_equal "before\nloaded\n", read("log/err")
    assert_empty server.log
  end

  def test_output_to_a_file_that_cannot_be_written
    write "config.ru", HELLO
    %w[stdout stderr].each do |name|
      assert_complaint 1, %r{cannot write /no/such/file: No such file}, rondo("--redirect-#{name}", "/no/such/file")
    end
  end

  # ---- files about the process ----

  def test_pid_and_state_file_live_as_long_as_the_server
    write "config.ru", HELLO
    server = start("--pidfile", "tmp/pids/server.pid", "-S", "tmp/state")
    assert_equal "#{server.pid}\n", read("tmp/pids/server.pid")
    state = YAML.safe_load(read("tmp/state"))
    assert_equal [server.pid, server.urls], state.values_at("pid", "addresses")
    server.stop
    assert_empty Dir[File.join(@folder, "tmp/**/*")].select { |path| File.file?(path) }
  end

  def test_a_pid_file_of_a_process_that_lives
    write "config.ru", HELLO
    write "server.pid", "#{Process.pid}\n"
    assert_complaint 1, /already running.*#{Process.pid}/, rondo("-q", "-b", "tcp://127.0.0.1:0", "--pidfile", "server.pid")
    assert_equal "#{Process.pid}\n", read("server.pid")
  end

  def test_a_pid_file_of_a_process_that_died
    write "config.ru", HELLO
    pid = Process.spawn("true").tap { |child| Process.wait(child) }
    write "server.pid", "#{pid}\n"
    server = start("--pidfile", "server.pid")
    assert_match(/^! .*server\.pid.*#{pid}/, server.log)
    assert_equal "#{server.pid}\n", read("server.pid")
  end

  def test_another_folder
    write "deep/config.ru", HELLO
    assert_equal "hello", get(start("--dir", "deep")).body
    assert_complaint 1, /directory .*nowhere/, rondo("--dir", "nowhere")
  end

  def test_the_load_path
    write "own/greeting.rb", "GREETING = 'from the load path'\n"
    write "config.ru", "require 'greeting'\nrun ->(env) { [200, {}, [GREETING]] }\n"
    assert_equal "from the load path", get(start("-I", File.join(@folder, "own"))).body
  end

  # ---- init ----

  def test_init_writes_once
    result = rondo("init")
    assert_equal [0, "wrote config/rondo.rb\n"], [result.code, result.out]
    write "config/rondo.rb", "# mine\n"
    assert_complaint 1, /config.rondo\.rb exists.*--force/, rondo("init")
    assert_equal "# mine\n", read("config/rondo.rb")
    assert_equal 0, rondo("init", "--force").code
    refute_equal "# mine\n", read("config/rondo.rb")
  end

  def test_what_init_writes_holds_when_uncommented
    rondo("init", "--full")
    text = read("config/rondo.rb")
    settings = text.scan(/^# (\w+ [\w.]+)$/).flatten.grep(/\A[a-z]\w+_\w+ (?:\d+|true|false)\z/)
    assert_operator settings.size, :>, 30
    write "config/rondo.rb", "#{settings.join("\n")}\nbind 'tcp://127.0.0.1:0'\n"
    write "config.ru", HELLO
    result = rondo("check")
    assert_equal 0, result.code, result.out
  end

  # ---- check ----

  def test_check_says_a_line_for_each_thing
    write "config.ru", HELLO
    result = rondo("check", "-b", "tcp://127.0.0.1:0")
    assert_equal [0, ""], [result.code, result.err]
    assert_equal %w[ok ok ok ok], result.out.lines.map { |line| line[/\A\w+/] }
    %w[configuration application addresses descriptors].each { |name| assert_includes result.out, name }
  end

  def test_check_fails_for_continuous_integration
    result = rondo("check", "-b", "tcp://127.0.0.1:0")
    assert_equal 1, result.code
    assert_match(/^failed +application: .*config\.ru/, result.out)

    write "config.ru", HELLO
    TCPServer.open("127.0.0.1", 0) do |taken|
      result = rondo("check", "-b", "tcp://127.0.0.1:#{taken.addr[1]}")
      assert_equal 1, result.code
      assert_match(/^failed +addresses: .*in use/, result.out)
    end

    write "config/rondo.rb", "max_connections 1_000_000\n"
    result = rondo("check", "-b", "tcp://127.0.0.1:0")
    assert_match(/^(?:failed +descriptors: .*1000000|ok +descriptors: limit \d{7,})/, result.out)

    write "config/rondo.rb", "no_such_verb 1\n"
    assert_equal 1, rondo("check").code
  end
end
