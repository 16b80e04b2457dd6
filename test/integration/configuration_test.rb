# frozen_string_literal: true

# Configuration files as a server reads them: which file, the order of precedence, the error for a mistake, and the
# effect of settings on a real request.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "json"

class ConfigurationIntegrationTest < ShellCase
  # The file of `rails new`, and lines that people add to it.
  RAILS_PUMA = <<~RUBY
    threads_count = ENV.fetch("RAILS_MAX_THREADS", 3)
    threads threads_count, threads_count
    port ENV.fetch("PORT", 3000)
    plugin :tmp_restart
    plugin :solid_queue if ENV["SOLID_QUEUE_IN_PUMA"]
    pidfile ENV["PIDFILE"] if ENV["PIDFILE"]
    workers ENV.fetch("WEB_CONCURRENCY") { 2 }
    preload_app!
    worker_timeout 3600 if ENV.fetch("RAILS_ENV", "development") == "development"
    on_worker_boot { |index| warn "worker \#{index}" }
    before_fork { warn "before the fork" }
    activate_control_app "tcp://127.0.0.1:0", auth_token: "x"
  RUBY

  def setup
    super
    write "config.ru", HELLO
  end

  def boot(*words, **options)
    server = start(*words, **options)
    server.wait_for_log(/Use Ctrl-C to stop/)
    server
  end

  # ---- which file ----

  def test_the_first_file_that_exists_is_read
    %w[config/puma.rb config/puma/staging.rb config/rondo.rb config/rondo/staging.rb].each do |name|
      write name, "tag 'x'\n"
      assert_match(/^\* +Config: #{name}$/, boot("-e", "staging").log)
    end
    assert_match(%r{^\* +Config: config/rondo\.rb$}, boot("-e", "production").log)
  end

  def test_a_file_that_is_named_or_none
    write "config/rondo.rb", "raise 'read all the same'\n"
    other = write("other.rb", "tag 'x'\n")
    assert_match(/^\* +Config: #{other}$/, boot("-C", other).log)
    [%w[-C -], %w[--no-config]].each { |words| assert_match(/^\* +Config: none/, boot(*words).log) }
  end

  # ---- mistakes ----

  def test_a_file_that_cannot_be_read
    assert_complaint 1, %r{cannot read missing/file\.rb}, rondo("-C", "missing/file.rb")
  end

  def test_mistakes_name_file_and_line
    {
      "\nport 3000,\n" => /config.rondo\.rb:\d/, # a syntax error
      "\n\nthraeds 5\n" => /config.rondo\.rb:3: unknown setting thraeds; did you mean threads\?/,
      "\nmax_body_bytes 'much'\n" => /config.rondo\.rb:2: max_body_bytes must be a number/,
      "after_booted\n" => /config.rondo\.rb:1: after_booted needs a block/,
      "\nraise 'mine'\n" => /config.rondo\.rb:2: mine/,
      "\n\n\nputs nonsense\n" => /config.rondo\.rb:4: /,
      "threads 5, 1\n" => /config.rondo\.rb:1: threads/,
      "ssl_bind '127.0.0.1', 0, key: 'k'\n" => /config.rondo\.rb:1: ssl_bind 127.0.0.1:0: cert is missing/,
      "log_format :xml\n" => /log_format must be common or json/,
      "trusted_proxies ['nowhere']\n" => /trusted_proxies: nowhere/
    }.each do |text, pattern|
      write "config/rondo.rb", text
      assert_complaint 1, pattern, rondo("-q", "-b", "tcp://127.0.0.1:0")
    end
  end

  def test_a_number_of_the_environment_that_is_none
    assert_complaint 1, /PORT must be a number, not "http"/, rondo(env: { "PORT" => "http" })
  end

  # ---- precedence ----

  def test_command_line_over_file_over_environment_over_default
    env = { "RAILS_MAX_THREADS" => "7", "RACK_ENV" => "test" }
    assert_match(/Max threads: .*5 .*default/, boot.log)
    assert_match(/Max threads: .*7 .*RAILS_MAX_THREADS/, boot(env: env).log)
    write "config/rondo.rb", "threads 8\nenvironment 'staging'\n"
    log = boot(env: env).log
    assert_match(/Max threads: .*8 .*rondo\.rb/, log)
    assert_match(/Environment: staging \(rondo\.rb\)/, log)
    log = boot("-t", "9", "-e", "production", env: env).log
    assert_match(/Max threads: .*9 .*command line/, log)
    assert_match(/Environment: production \(command line\)/, log)
  end

  def test_addresses_of_the_command_line_replace_those_of_the_file
    path = File.join(@folder, "file.sock")
    write "config/rondo.rb", "bind 'unix://#{path}'\n"
    server = boot
    assert_equal 1, server.log.scan(ServerProcess::LISTENING).size
    refute File.exist?(path)
    assert_equal "unix://#{path}", start(binds: [], deadline: PATIENCE).wait_for_log(ServerProcess::LISTENING)[1]
  end

  def test_port_and_host_of_the_environment
    HeldPort.open do |port|
      server = start(binds: [], env: { "PORT" => port.to_s, "HOST" => "127.0.0.1" })
      assert_equal "http://127.0.0.1:#{port}", server.wait_for_log(ServerProcess::LISTENING)[1]
    end
  end

  # ---- Puma's files ----

  def test_the_file_of_a_rails_application
    write "config/puma.rb", RAILS_PUMA
    server = boot("--pidfile", "server.pid")
    assert_equal "hello", get(server).body
    assert_match(/Max threads: .*3 .*puma\.rb/, server.log)
    notes = server.log.lines.grep(/\A! /).join
    assert_match(/^\* +Workers: 2 \(puma\.rb\)$/, server.log)
    refute_match(/tmp_restart/, notes)
  end

  def test_hooks
    write "config/rondo.rb", <<~RUBY
      on_booted { warn "booted" }
      after_booted { warn "after booted" }
      on_stopped { warn "on stopped" }
      after_stopped { warn "after stopped" }
    RUBY
    server = boot
    assert server.stop.success?
    assert_equal ["booted", "after booted", "on stopped", "after stopped"],
                 server.log.lines.map(&:chomp).grep(/booted|stopped/)
  end

  def test_a_hook_that_raises_is_told_and_the_server_serves
    write "config/rondo.rb", "after_booted { raise 'no cache' }\n"
    server = start
    server.wait_for_log(/after_booted raised at .*: no cache/)
    assert_equal "hello", get(server).body
  end

  def test_an_application_in_the_file
    File.delete(File.join(@folder, "config.ru"))
    write "config/rondo.rb", "app ->(env) { [200, {}, ['from the file']] }\n"
    assert_equal "from the file", get(boot).body
  end

  # ---- effects of settings ----

  def test_limits
    write "config/rondo.rb", "http_content_length_limit 10\n"
    server = boot
    post = ->(body) { Net::HTTP.new("127.0.0.1", server.port).post("/", body).code }
    assert_equal %w[200 413], [post.call("x" * 10), post.call("x" * 11)]
    server = boot("-maxbd", "1k")
    assert_equal %w[200 413], [post.call("x" * 1024), post.call("x" * 1025)]
  end

  def test_keep_alive_switched_off
    write "config/rondo.rb", "enable_keep_alives false\n"
    assert_equal "close", get(boot)["connection"]
  end

  def test_scheme_and_default_host
    write "config.ru", "run ->(env) { [200, {}, [env.values_at('rack.url_scheme', 'SERVER_NAME', " \
                       "'SERVER_PORT').join(' ')]] }\n"
    write "config/rondo.rb", "rack_url_scheme 'https'\nserver_name 'shop.example:8443'\n"
    server = boot
    TCPSocket.open("127.0.0.1", server.port) do |client|
      client.write("GET / HTTP/1.0\r\n\r\n")
      assert_match(/https shop\.example 8443\z/, client.read)
    end
  end

  def test_early_hints
    write "config.ru", "run ->(env) { [200, {}, [env.key?('rack.early_hints').to_s]] }\n"
    assert_equal %w[false true], [get(boot).body, get(boot("--early-hints")).body]
    write "config/rondo.rb", "early_hints\n"
    assert_equal "true", get(boot).body
  end

  def test_lowlevel_error_handler
    write "config.ru", "run ->(env) { raise 'broken' }\n"
    write "config/rondo.rb", "lowlevel_error_handler { |error, env, status| " \
                             "[503, {}, [\"\#{error.message} \#{env['PATH_INFO']} \#{status}\"]] }\n"
    server = boot
    response = get(server, "/here")
    assert_equal ["503", "broken /here 500"], [response.code, response.body]
    server.wait_for_log(/RuntimeError: broken/)
  end

  def test_backtraces_reach_clients_in_development_only
    write "config.ru", "run ->(env) { raise 'secret detail' }\n"
    assert_includes get(boot("-e", "development")).body, "secret detail"
    refute_includes get(boot("-e", "production")).body, "secret detail"
  end

  def test_json_lines
    write "config/rondo.rb", "log_format :json\nlog_requests\n"
    server = boot(spawn: { err: File.join(@folder, "err") })
    port = server.log[/Listening on http:\S+?:(\d+)/, 1]
    Net::HTTP.get(URI("http://127.0.0.1:#{port}/a%22b"))
    server.stop
    lines = server.log.lines.map { |line| JSON.parse(line) }
    assert_equal(["GET", "/a%22b", 200], lines.find { |line| line["method"] }.values_at("method", "target", "status"))
    assert_includes(lines.map { |line| line["message"] }, "- Goodbye!")
    lines.each { |line| assert_fits line }
    assert_empty read("err")
  end

  def test_json_of_workers_and_errors
    write "config/rondo.rb", "log_format :json\nlog_requests\nqueue_time\nworkers 2\nrequest_ids :make\n"
    write "config.ru", "run ->(_env) { raise 'no \\u2028 luck' }\n"
    server = boot(spawn: { err: File.join(@folder, "err") })
    server.wait_for_log(/Worker 0.*booted.*Worker 1.*booted|Worker 1.*booted.*Worker 0.*booted/m)
    Net::HTTP.get(URI("http://127.0.0.1:#{server.log[/Listening on http:\S+?:(\d+)/, 1]}/"))
    server.stop
    lines = [server.log, read("err")].flat_map(&:lines).map { |line| JSON.parse(line) }
    lines.each { |line| assert_fits line }
    assert_equal ["error"], lines.select { |line| line["worker"] }.map { |line| line["level"] }.uniq
    assert(lines.any? { |line| line["queue_us"] })
    ids = lines.map { |line| line["request_id"] }.compact
    assert_equal [2, 1], [ids.size, ids.uniq.size], "the line of the request and that of its error"
  end

  # By docs/log.schema.json, of which this knows the words that it uses.
  def assert_fits(line)
    schema = JSON.parse(File.read(File.expand_path("../../docs/log.schema.json", __dir__)))
    faults = schema["oneOf"].to_h { |kind| [kind["title"], faults(kind, line)] }
    assert_equal 1, faults.count { |_, found| found.empty? }, "#{line}: #{faults}"
  end

  def faults(kind, line)
    (kind["required"] - line.keys).map { |name| "no #{name}" } + line.flat_map do |name, value|
      rule = kind["properties"][name] or next ["#{name} is not known"]
      fits = { "type" => -> { { "string" => String, "integer" => Integer }.fetch(rule["type"]) === value }, # rubocop:disable Style/CaseEquality
               "enum" => -> { rule["enum"].include?(value) }, "pattern" => -> { value.match?(Regexp.new(rule["pattern"])) },
               "minimum" => -> { value >= rule["minimum"] }, "maximum" => -> { value <= rule["maximum"] } }
      rule.keys.grep_v("description").reject { |word| fits.fetch(word).call }.map { |word| "#{name}: #{word}" }
    end
  end

  def test_lines_of_a_pipe_have_time_and_worker
    time = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}/
    write "config.ru", "run ->(env) { raise 'no luck' }\n"
    server = start("-w", "1", "-e", "production", env: { "RONDO_LOG_TIME" => nil })
    get(server)
    server.wait_for_log(/^#{time} \[worker 0\] .*no luck/)
    server.stop
    assert_match(/^#{time} \* Listening on /, server.log)
    assert_match(/^#{time} - Goodbye!$/, server.log)
  end

  def test_loggers_and_formatters_of_the_application
    write "config/rondo.rb", "log_formatter { |line| \"web: \#{line}\" }\n"
    server = boot
    assert_match(/^web: \* Listening on/, server.log)
  end

  def test_a_logger_of_the_application
    write "config/rondo.rb", "require 'logger'\ncustom_logger Logger.new('own.log')\n"
    HeldPort.open do |port|
      server = start("-b", "tcp://127.0.0.1:#{port}", binds: [])
      eventually("the server") { File.exist?(File.join(@folder, "own.log")) && read("own.log").include?("Use Ctrl-C") }
      server.stop
      assert_empty server.log
    end
    assert_match(/INFO.*Listening on.*INFO.*Goodbye/m, read("own.log"))
  end
end
