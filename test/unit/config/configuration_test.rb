# frozen_string_literal: true

# The verbs of the configuration file, and its errors.
# SPDX-License-Identifier: MIT

require "test_helper"
require "pathname"
require "tmpdir"
require "rondo/config/configuration"

class ConfigurationTest < Minitest::Test
  Configuration = Rondo::Configuration
  Verbs = Configuration::Verbs
  Settings = Rondo::Settings

  # This is only Ruby: a collection at every allocation would take minutes and prove nothing.
  def before_setup
    super
    GC.stress = false
  end

  def setup
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "rondo.rb")
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def load(text)
    File.write(@path, text)
    Configuration.new(@path)
  end

  def values(text)
    load(text).values.transform_values(&:first)
  end

  def complaint(text)
    error = assert_raises(Rondo::ConfigurationError) { load(text) }
    assert_equal 1, error.message.lines.size, error.message
    error.message
  end

  def test_values_name_their_file
    assert_equal({ tag: ["x", "rondo.rb"] }, load('tag "x"').values)
  end

  Settings::CORE.each do |name, row|
    if row[:unit] == "bool"
      define_method("test_switch_#{name}") do
        assert_equal [1, 1, 0], [values(name.to_s), values("#{name} true"), values("#{name} false")].map { |v| v[name] }
      end
    else
      define_method("test_number_#{name}") do
        assert_equal row[:default], values("#{name} #{row[:default]}")[name]
        assert_match(/\A#{@path}:1: #{name} \d+ is not between /, complaint("#{name} #{row[:max] + 1}"))
        assert_match(/\A#{@path}:2: #{name} must be a number/, complaint("\n#{name} 'many'"))
        assert_match(/:1: #{name} must be a number/, complaint("#{name} nil")) unless name == :max_keep_alive # Puma's nil sets nothing
      end
    end
  end

  Settings::CORE_NAMES.select { |name, names| names.verb && name.end_with?("_ms") }.each do |name, names|
    define_method("test_seconds_#{names.verb}") { assert_equal 1500, values("#{names.verb} 1.5")[name] }
  end

  # Settings of these kinds whose verb is their name.
  def self.of_kind(*kinds)
    Settings::ROWS.select { |row| kinds.include?(row.kind) && row.verb == row.name.to_s }.map(&:name)
  end

  of_kind(:any).each do |verb|
    define_method("test_plain_#{verb}") { assert_equal "x", values("#{verb} 'x'")[verb] }
  end

  of_kind(:path, :written_file, :folder).each do |verb|
    define_method("test_path_#{verb}") do
      assert_equal ["x", "x"], ["'x'", "Pathname('x')"].map { |text| values("#{verb} #{text}")[verb] }
    end
  end

  (of_kind(:addresses) - %i[bind]).each do |verb|
    define_method("test_networks_#{verb}") do
      assert_equal [["::1", "unix"], ["::1"]], ["['::1', 'unix']", "'::1'"].map { |text| values("#{verb} #{text}")[verb] }
    end
  end

  # A value of the wrong type => the error of its verb.
  WRONG = {
    'listen "tcp://127.0.0.1:0"' => %r{listen tcp://127\.0\.0\.1:0 needs an application or a block, and not both},
    'listen("tcp://127.0.0.1:0", "a.ru") {}' => %r{listen tcp://127\.0\.0\.1:0 needs an application or a block, and not both},
    'listen "localhost", "admin.ru"' => /listen localhost: it has no port/,
    'listen "a:b", "admin.ru"' => /listen a:b: expected tcp:.*/,
    'listen "tcp://127.0.0.1:0", 5' => /listen must be a path, not 5/,
    "2.times { listen('tcp://127.0.0.1:0?backlog=5') {} }" => %r{listen tcp://127\.0\.0\.1:0 is there twice},
    "trusted_proxies 5" => /trusted_proxies must be a list of addresses, not 5/,
    "proxy_protocol_from({})" => /proxy_protocol_from must be a list of addresses, not {}/,
    "rack_url_scheme :gopher" => /rack_url_scheme must be http or https, not :gopher/,
    "rack_url_scheme 5" => /rack_url_scheme must be http or https, not 5/,
    "server_name 5" => /server_name must be a String, not 5/,
    "redis_url 5" => /redis_url must be a String, not 5/,
    "pidfile 5" => /pidfile must be a path, not 5/,
    "pidfile \"a\\0b\"" => /pidfile must be a path, not "a\\u0000b"/,
    "state_path 5" => /state_path must be a path, not 5/,
    "directory 5" => /directory must be a path, not 5/,
    "public :www" => /public must be a path, not :www/,
    "rackup nil" => /rackup must be a path, not nil/,
    "x_sendfile_root 'a', 5" => /x_sendfile_root must be a path, not 5/,
    "stdout_redirect 'a', 5" => /stdout_redirect must be a path, not 5/,
    "log_format :xml" => /log_format must be common or json, not :xml/,
    "custom_logger 5" => /custom_logger must respond to info, warn and error, or to write; 5 does not/,
    "lowlevel_error_handler 5" => /lowlevel_error_handler must respond to call; 5 does not/
  }.freeze

  def test_addresses_with_an_application
    found = values("listen '127.0.0.1:1', 'a.ru'\nlisten('./s') { 5 }\nlisten 'tcp://[::1]:2?backlog=5', ->(_) { 6 }")[:listen]
    assert_equal ["tcp://127.0.0.1:1", "unix://#{File.expand_path("s")}", "tcp://[::1]:2?backlog=5"], found.keys
    assert_equal ["a.ru", 5, 6], [found.values[0], found.values[1].call, found.values[2].call(nil)]
  end

  # What a program gives in place of a file: an Array is several values, a Hash several addresses.
  def test_values_of_a_program
    configuration = Configuration.new
    struct = Struct.new(:write).new
    configuration.begin_with("a program", { threads: [1, 2], bind: %w[a b], custom_logger: struct, workers: nil, pidfile: nil,
                                            listen: { "tcp://a:1" => :itself.to_proc }, listen_raw: ["tcp://a:2", -> { 5 }] })
    found = configuration.values.transform_values(&:first)
    assert_equal [1, 2, %w[a b], struct, nil], found.values_at(:min_threads, :max_threads, :bind, :custom_logger, :pidfile)
    assert_equal [["tcp://a:1"], ["tcp://a:2"], false], [found[:listen].keys, found[:listen_raw].keys, found.key?(:workers)]
    error = assert_raises(Rondo::ConfigurationError) { configuration.begin_with("a program", { threads: [1, 2, 3] }) }
    assert_match(/\Aa program: threads: wrong number of arguments/, error.message)
  end

  def test_values_of_the_wrong_type_name_verb_and_line
    WRONG.each { |line, words| assert_match(/\A#{@path}:2: #{words}\z/, complaint("tag 'x'\n#{line}")) }
  end

  def test_what_may_be_nothing
    %i[pidfile state_path directory public redis_url custom_logger trusted_proxies].each do |verb|
      assert_nil values("#{verb} nil").fetch(verb)
    end
    assert_equal [nil, nil], values("rack_url_scheme nil\nserver_name nil").values
  end

  of_kind(:switch).each do |verb|
    define_method("test_switch_#{verb}") do
      assert_equal [true, false], [values(verb.to_s)[verb], values("#{verb} false")[verb]]
    end
  end

  Verbs::HOOKS.merge(Verbs::WORKER_HOOKS, Verbs::REFORK_HOOKS).each do |verb, name|
    define_method("test_hook_#{verb}") do
      hooks = load("#{verb} { 1 }\n#{verb} { 2 }").hooks
      assert_equal [1, 2], hooks[name].map(&:call)
      assert_match(/:1: #{verb} needs a block/, complaint(verb.to_s))
    end
  end

  def test_hooks_with_a_key_keep_something_for_each_other
    hooks = load("before_worker_boot(:pool) { |i, kept| kept[:i] = i }\nbefore_worker_shutdown(:pool) { |i, kept| [i, kept] }").hooks
    hooks[:before_worker_boot].each { |hook| hook.call(3) }
    assert_equal [4, { i: 3 }], hooks[:before_worker_shutdown].first.call(4)
  end

  # A block takes what it wants of what there is; a method or lambda says what it needs.
  def test_what_hooks_take
    hooks = load(<<~RUBY).hooks
      before_fork(&-> { :none })
      before_fork(&->(one) { [one] })
      before_worker_boot(:k, &->(index, *rest) { [index, *rest] })
      before_worker_boot("k", &->(index) { index })
      before_worker_boot(&->(index, more = 2) { [index, more] })
      after_stopped(&->(more = 3) { more })
    RUBY
    assert_equal [:none, [nil]], (hooks[:before_fork].map { |hook| hook.call(nil) })
    assert_equal [[4, {}], 4, [4, 2]], (hooks[:before_worker_boot].map { |hook| hook.call(4) })
    assert_equal [3], hooks[:after_stopped].map(&:call)
  end

  def test_what_hooks_need
    { "before_fork(&->(a, b) { })" => "before_fork gives its block 1 argument, and this one needs 2",
      "after_booted(&->(a) { })" => "after_booted gives its block 0 arguments, and this one needs 1",
      "before_worker_boot(:k, &->(a, b, c) { })" => "before_worker_boot gives its block 2 arguments, and this one needs 3",
      "on_restart(&->(a, name:) { })" => "on_restart gives its block 1 argument, and this one needs name:",
      "before_worker_boot(7) { }" => "the key of before_worker_boot must be a String or Symbol, not 7" }.each do |text, message|
      assert_match(/:1: #{Regexp.escape(message)}\z/, complaint(text), text)
    end
  end

  (Verbs::BUILT_IN.keys + Verbs::WITHOUT_MEANING).each do |verb|
    define_method("test_accepted_with_a_line_#{verb}") do
      assert_equal 1, load("#{verb} 3").notes.size
      assert_match(/\A#{verb}/, load("#{verb} 3").notes.first)
      load("#{verb} {}") if Verbs::WITHOUT_MEANING.include?(verb)
    end
  end

  def test_the_last_word_on_how_connections_are_read
    assert_equal({ keep_alive: 1 }, values("queue_requests false\nqueue_requests false\nqueue_requests"))
    assert_equal({ keep_alive: 0 }, values("queue_requests false\nqueue_requests true\nqueue_requests false"))
    assert_equal values("enable_keep_alives false"), values("enable_keep_alives false\nqueue_requests false\nqueue_requests true")
    assert_equal({ poll_only: 0 }, values("io_selector_backend :poll\nio_selector_backend :auto"))
    assert_equal ["io_selector_backend: Rondo uses poll", "io_selector_backend: Rondo uses the best that the system has"],
                 load("io_selector_backend :poll\nio_selector_backend :auto").notes
  end

  def test_how_connections_are_read
    assert_equal [{ keep_alive: 0 }, {}], [values("queue_requests false"), values("queue_requests")]
    assert_equal [{ poll_only: 1 }, { poll_only: 1 }, {}], %w[poll select epoll].map { |name| values("io_selector_backend :#{name}") }
    assert_equal ["queue_requests: Rondo always reads a request before a thread takes it; connections close after each response",
                  "io_selector_backend: Rondo uses poll"], load("queue_requests false\nio_selector_backend :poll").notes
  end

  def test_requests_of_a_connection
    assert_equal [5, 0, 3, 0, 7], ["max_keep_alive 5", "max_keep_alive Float::INFINITY", "max_fast_inline 3", "max_fast_inline Float::INFINITY",
                                   "max_keep_alive 7\nmax_fast_inline 3"].map { |text| values(text)[:max_keep_alive] }
    assert_empty values("max_keep_alive nil\nmax_fast_inline nil")
  end

  def test_who_the_client_is
    everybody = { proxy_protocol_from: Settings::EVERYBODY, proxy_protocol_optional: true }
    { ":localhost" => { client_address: "127.0.0.1" }, "'192.0.2.1'" => { client_address: "192.0.2.1" },
      "header: 'X_Real-IP'" => { client_field: "x-real-ip" }, "proxy_protocol: :v1" => everybody,
      "proxy_protocol: 'V1'" => everybody, "" => { client_field: nil, client_address: nil } }.each do |text, settings|
      assert_equal settings, values("set_remote_address #{text}"), text
    end
    assert_equal({ proxy_protocol_from: ["10.0.0.1"] }, values("proxy_protocol_from '10.0.0.1'\nset_remote_address proxy_protocol: :v1"))
    [":peer", "5", "proxy_protocol: :v2", "header: ''", "header: 'a b'", "nil"].each do |text|
      assert_match(/:1: set_remote_address must be :socket, :localhost, an address, /, complaint("set_remote_address #{text}"))
    end
  end

  def test_methods
    assert_equal [%w[GET], nil], ["%w[GET]", ":any"].map { |text| values("supported_http_methods #{text}")[:allowed_methods] }
    ["[]", "%w[GET GET]", "'GET'", "[:get]"].each do |text|
      assert_match(/:1: supported_http_methods must be :any, or names of methods, each once, not /, complaint("supported_http_methods #{text}"))
    end
  end

  def test_empty_fibers
    assert_equal [true, true, false], ["fiber_per_request", "clean_thread_locals", "clean_thread_locals false"].map { |text| values(text)[:fiber_each] }
  end

  of_kind(:seconds).each do |verb|
    define_method("test_duration_#{verb}") do
      assert_equal [3, 0.5, 0], ["3", "0.5", "0"].map { |text| values("#{verb} #{text}")[verb] }
      assert_match(/:1: #{verb} must be a number of seconds/, complaint("#{verb} :soon"))
      assert_match(/:1: #{verb} must not be negative/, complaint("#{verb} -1"))
    end
  end

  PUMA = %i[
    port bind workers threads environment preload_app! rackup app directory pidfile state_path tag quiet
    log_requests stdout_redirect log_formatter custom_logger plugin activate_control_app early_hints
    rack_url_scheme set_remote_address set_default_host worker_timeout worker_boot_timeout
    worker_shutdown_timeout worker_check_interval worker_culling_strategy force_shutdown_after
    drain_on_shutdown shutdown_debug idle_timeout first_data_timeout persistent_timeout max_keep_alive
    enable_keep_alives queue_requests wait_for_less_busy_worker fork_worker out_of_band
    lowlevel_error_handler http_content_length_limit supported_http_methods allow_underscore_headers
    io_selector_backend max_io_threads fiber_per_request prune_bundler raise_exception_on_sigterm
    single cluster before_fork before_worker_boot on_worker_boot before_worker_shutdown
    on_worker_shutdown before_worker_fork on_worker_fork after_worker_fork after_worker_shutdown
    after_booted on_booted after_stopped on_stopped before_restart on_restart before_refork
    after_refork on_refork before_thread_start on_thread_start before_thread_exit on_thread_exit
    ssl_bind load clear_binds! restart_command silence_single_worker_warning
    silence_fork_callback_warning
  ].freeze

  def test_what_a_restart_executes
    configuration = load('restart_command "bundle exec rondo"')
    assert_equal "bundle exec rondo", configuration.values[:restart_command].first
    assert_empty configuration.notes
    assert_equal "bundle exec rondo", configuration.options[:restart_cmd]
    %w[puma bundle\ exec\ puma /usr/bin/puma].each do |command|
      configuration = load("restart_command #{command.inspect}")
      refute configuration.values.key?(:restart_command)
      assert_equal ["restart_command: a restart executes the program that runs, and not Puma (#{command})"], configuration.notes
    end
  end

  def test_a_refork_counts_the_application_as_loaded_once
    assert_equal({ refork_after: 1000, preload: true }, values("fork_worker"))
    assert_equal({ refork_after: 0, preload: true }, values("preload_app! false\nfork_worker 0"))
    assert_equal({ refork_after: 5, preload: true }, values("fork_worker '5'\npreload_app! false"))
    assert_equal({ preload: false }, values("preload_app! false"))
    assert_equal 7, load("@options[:fork_worker] = 7").options[:fork_worker]
    assert_match(/:1: fork_worker must be a number, not "x"\z/, complaint("fork_worker 'x'"))
    assert_match(/:1: fork_worker must not be negative\z/, complaint("fork_worker -1"))
  end

  def test_choices_of_puma
    { "bind_to_activated_sockets" => [:besides, true], 'bind_to_activated_sockets "only"' => [:only, "only"],
      "bind_to_activated_sockets false" => [nil, nil], "shutdown_debug" => [:always, true],
      "shutdown_debug on_force: true" => %i[on_force on_force], "shutdown_debug false" => [nil, nil] }.each do |line, (value, theirs)|
      name = line[/\w+/].to_sym
      configuration = load(line)
      value.nil? ? assert_nil(configuration.values[name].first, line) : assert_equal(value, configuration.values[name].first, line)
      theirs.nil? ? assert_nil(configuration.options[name], line) : assert_equal(theirs, configuration.options[name], line)
    end
  end

  def test_every_verb_of_puma_is_known
    assert_empty PUMA - Verbs.public_instance_methods(false)
  end

  def test_settings_of_the_shell_have_verbs
    verbs = Settings::ROWS.reject { |row| row.name == :host }.map { |row| row.verb_name.to_sym }
    assert_empty verbs - Verbs.public_instance_methods(false)
  end

  def test_the_file_rails_generates
    configuration = load(<<~RUBY)
      threads_count = ENV.fetch("NO_SUCH_VARIABLE", 3)
      threads threads_count, threads_count
      port ENV.fetch("NO_SUCH_VARIABLE", 3000)
      plugin :tmp_restart
      plugin :solid_queue if ENV["NO_SUCH_VARIABLE"]
      pidfile ENV["NO_SUCH_VARIABLE"] if ENV["NO_SUCH_VARIABLE"]
    RUBY
    assert_empty configuration.notes
    assert_equal 3, configuration.values[:max_threads].first
    assert configuration.values[:tmp_restart].first
    assert_match(/\Atcp:.*:3000\z/, configuration.values[:bind].first.fetch(0))
  end

  def test_binds_add_up
    assert_equal ["tcp://127.0.0.1:1", "unix:///x", "tcp://[::1]:2"],
                 values("bind 'tcp://127.0.0.1:1'\nbind 'unix:///x'\nport '2', '::1'")[:bind]
    assert_empty values("bind 'tcp://127.0.0.1:1'\nclear_binds!")[:bind]
    assert_equal false, values("bind 'tcp://127.0.0.1:1'\nbind false")[:bind]
    assert_equal ["unix:///x"], values("bind false\nbind 'unix:///x'")[:bind]
  end

  def test_threads
    assert_equal [2, 7], values("threads 2, 7").values_at(:min_threads, :max_threads)
    assert_equal [4, 4], values("threads 4").values_at(:min_threads, :max_threads)
    assert_equal [1, 5], values("threads 0, 5").values_at(:min_threads, :max_threads)
    assert_match(/:1: threads: at least one thread is needed/, complaint("threads 0"))
    assert_match(/:1: threads: the minimum 5 is above the maximum 2/, complaint("threads 5, 2"))
  end

  def test_workers
    assert_equal [2, 3, "auto", "auto", 0],
                 ["2", "'3'", "'auto'", ":auto", "0"].map { |text| values("workers #{text}")[:workers] }
    ["nil", "''"].each { |text| refute_includes values("workers #{text}"), :workers }
    assert_match(/:1: workers must be a number or :auto, not "few"/, complaint("workers 'few'"))
  end

  def test_preloading
    assert_equal [true, false], ["preload_app!", "preload_app! false"].map { |text| values(text)[:preload] }
  end

  def test_lifetimes
    assert_equal({ max_requests: 1000, memory_measure: :pss, max_memory: 512 << 20, recycle_jitter: 20 },
                 values("max_requests 1000\nmax_memory '512m', measure: :pss\nrecycle_jitter 20"))
    assert_match(/:1: max_requests must be a number/, complaint("max_requests 'many'"))
    assert_match(/:1: max_memory must be a size/, complaint("max_memory 'much'"))
    assert_match(/:1: memory_measure must be rss or pss, not :vsz/, complaint("memory_measure :vsz"))
    assert_match(/:1: recycle_jitter 101 is above/, complaint("recycle_jitter 101"))
    assert_match(/:1: worker_culling_strategy must be/, complaint("worker_culling_strategy :best"))
  end

  def test_other_spellings
    assert_equal({ max_body_bytes: 20 << 20, keep_alive: 0, default_host: "a:1", url_scheme: "https" },
                 values("http_content_length_limit '20m'\nenable_keep_alives false\n" \
                        "server_name 'a:1'\nrack_url_scheme 'https'"))
    assert_equal 0, values("http_content_length_limit nil")[:max_body_bytes]
  end

  def test_names_may_be_symbols
    assert_equal({ url_scheme: "https", log_format: :json }, values("rack_url_scheme :https\nlog_format 'json'"))
  end

  def test_allowed_origins
    assert_equal [:same, [:same, "https://a.example"], nil],
                 [":same", "[:same, 'https://a.example']", "nil"].map { |text| values("allowed_origins #{text}")[:allowed_origins] }
    assert values("allowed_origins { |env| env }")[:allowed_origins].call(true)
    assert_match(/:1: allowed_origins: "example.com" is not an origin/, complaint("allowed_origins 'example.com'"))
  end

  def test_files_of_the_application
    assert_equal [["a", "b", "/c"], [], ["a"]],
                 ["x_sendfile_root 'a', 'b'\nx_sendfile_root '/c'", "x_sendfile_root 'a'\nx_sendfile_root false",
                  "x_sendfile_root false\nx_sendfile_root ['a']"].map { |text| values(text)[:x_sendfile_root] }
    assert_equal ["X-Sendfile", "x-accel-redirect", nil],
                 ["'X-Sendfile'", ":'x-accel-redirect'", "nil"].map { |text| values("sendfile_type #{text}")[:sendfile_type] }
    assert_match(/:1: sendfile_type must be X-Sendfile or X-Accel-Redirect, not "X-File"/, complaint("sendfile_type 'X-File'"))
  end

  def test_shutdown
    assert_equal [5000, 86_400_000, 0],
                 ["5", ":forever", ":immediately"].map { |at| values("force_shutdown_after #{at}")[:drain_timeout_ms] }
    assert_match(/:1: force_shutdown_after/, complaint("force_shutdown_after :soon"))
  end

  def test_redirects
    assert_equal({ redirect_stdout: "a", redirect_stderr: "b", redirect_append: true },
                 values("stdout_redirect 'a', 'b', true"))
  end

  def test_blocks
    found = values("log_formatter { |line| line.upcase }\nlowlevel_error_handler { |e| e }\napp { |env| env }")
    assert_equal "A", found[:log_formatter].call("a")
    assert_equal :e, found[:lowlevel_error_handler].call(:e)
    assert_equal :env, found[:app].call(:env)
    assert_match(/:1: log_formatter needs a block/, complaint("log_formatter"))
  end

  def test_blocks_for_one_process_or_for_workers
    { true => "y", false => "x" }.each do |cluster, tag|
      configuration = load("tag 'z'\nsingle { tag 'x' }\ncluster { tag 'y' }")
      assert_equal "z", configuration.values[:tag].first
      assert_equal tag, configuration.choose(cluster).values[:tag].first
    end
    error = assert_raises(Rondo::ConfigurationError) { load("\nsingle { tags 'x' }").choose(false) }
    assert_match(/\A#{@path}:2: unknown setting tags/, error.message)
  end

  def test_a_plugin_that_no_gem_has
    assert_equal "#{@path}:2: plugin no_such: no gem has the file puma/plugin/no_such.rb", complaint("\nplugin :no_such")
    assert_match(/:1: plugin "..\/x" is not the name of a plugin/, complaint("plugin '../x'"))
  end

  def test_load_reads_another_file
    File.write(File.join(@folder, "other.rb"), "tag 'other'\nnonsense 1")
    text = "load #{File.join(@folder, "other.rb").inspect}"
    assert_match(/other\.rb:2: unknown setting nonsense/, complaint(text))
    File.write(File.join(@folder, "other.rb"), "tag 'other'")
    assert_equal "other", values(text)[:tag]
  end

  def test_get
    assert_equal "x!", values("tag 'x'\npidfile get(:tag) + '!'")[:pidfile]
    assert_equal "none", values("pidfile get(:tag, 'none')")[:pidfile]
  end

  def test_tls_is_refused
    assert_match(/:1: ssl_bind :::1: cert is missing/, complaint("ssl_bind '::', 1, key: 'k'"))
  end

  def test_an_unknown_verb_names_line_and_nearest
    assert_equal "#{@path}:3: unknown setting max_body_byte; did you mean max_body_bytes?",
                 complaint("\n\nmax_body_byte 3")
    assert_equal "#{@path}:1: unknown setting qwertzuiop", complaint("qwertzuiop")
  end

  def test_a_syntax_error_names_file_and_line
    assert_match(/\A#{@path}:2: /, complaint("tag 'x'\ntag ]"))
  end

  def test_an_exception_names_file_and_line
    assert_equal "#{@path}:2: no luck (RuntimeError)", complaint("tag 'x'\nraise 'no luck'")
    assert_match(/\A#{@path}:1: cannot load such file -- nowhere \(LoadError\)/, complaint("require 'nowhere'"))
  end

  def test_exceptions_that_are_no_standard_error
    assert_equal "#{@path}:1: no luck (Exception)", complaint("raise Exception, 'no luck'")
    assert_match(/\A#{@path}:1: stack level too deep \(SystemStackError\)\z/, complaint("def deeper = deeper\ndeeper"))
    assert_equal "#{@path}:2: it called exit at boot (status 0)", complaint("\nexit")
    assert_raises(Interrupt) { load("raise Interrupt") }
    assert_raises(SignalException) { load("raise SignalException, 'TERM'") }
  end

  def test_a_file_that_cannot_be_read
    error = assert_raises(Rondo::ConfigurationError) { Configuration.new(@path) }
    assert_equal "cannot read #{@path}: No such file or directory", error.message
    error = assert_raises(Rondo::ConfigurationError) { Configuration.new(@folder) }
    assert_equal "cannot read #{@folder}: Is a directory", error.message
  end

  def test_the_file_that_applies
    Dir.chdir(@folder) do
      assert_nil Configuration.find("test")
      ["config/puma.rb", "config/puma/test.rb", "config/rondo.rb", "config/rondo/test.rb"].each do |path|
        FileUtils.mkdir_p(File.dirname(path))
        File.write(path, "")
        assert_equal path, Configuration.find("test")
      end
      assert_equal "config/rondo.rb", Configuration.find("other")
    end
  end
end
