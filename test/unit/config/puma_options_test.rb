# frozen_string_literal: true

# What configuration files and plugins say by Puma's inner names: @options, @config, DefaultRackup, inject.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "tmpdir"
require "rondo/config/configuration"

class PumaOptionsTest < Minitest::Test
  Configuration = Rondo::Configuration

  def before_setup
    super
    GC.stress = false # this is only Ruby
  end

  def load(text, **options)
    Dir.mktmpdir do |folder|
      @path = File.join(folder, "puma.rb")
      File.write(@path, text)
      return Configuration.new(@path, **options)
    end
  end

  def values(text, **options)
    load(text, **options).values.transform_values(&:first)
  end

  def complaint(text)
    error = assert_raises(Rondo::ConfigurationError) { load(text) }
    assert_equal 1, error.message.lines.size, error.message
    error.message.sub("#{@path}:", "")
  end

  def test_keys_are_settings
    assert_equal({ workers: 2, preload: false, max_threads: 7, head_timeout_ms: 5000, keep_alive: 0, state_path: "s",
                   url_scheme: "https", control_token: "t", tag: "x", bind: ["tcp://[::1]:1"] },
                 values(<<~RUBY))
                   @options[:workers] = 2
                   @options[:preload_app] = false
                   @options[:max_threads] = 7
                   @options[:first_data_timeout] = 5
                   @options[:enable_keep_alives] = false
                   @options[:state] = "s"
                   @options["rack_url_scheme"] = "https"
                   @options[:control_auth_token] = "t"
                   @options.merge!(tag: "x")
                   (@options[:binds] ||= []) << "tcp://[::1]:1"
                 RUBY
  end

  def test_false_is_no_file
    assert_empty values("pidfile 'a'\nstate_path 'b'\n@options[:pidfile] = false\n@options[:state] = nil")
  end

  def test_values_are_read_as_puma_has_them
    configuration = load(<<~RUBY)
      workers "2"
      persistent_timeout 5
      force_shutdown_after 1.5
      enable_keep_alives false
      @options[:seen] = [@options[:workers], @options[:persistent_timeout], @options[:force_shutdown_after],
                         @options[:enable_keep_alives], @options[:max_threads], get(:workers), get(:seen, 4), get(:tag, 3)]
    RUBY
    assert_equal [2, 5, 1.5, false, nil, 2, 4, 3], configuration.own[:seen]
    assert_equal [:max_threads, 9], [:max_threads, configuration.options.fetch(:nothing) { |key| key.size + 2 }]
    assert_equal 5, configuration.options[:max_threads]
    assert_raises(KeyError) { configuration.options.fetch(:nothing) }
    assert configuration.options.key?(:workers)
    assert_equal({ workers: 2, persistent_timeout: 5 }, configuration.options.to_h.slice(:workers, :persistent_timeout))
  end

  def test_the_command_line_wins_over_the_file
    text = "workers 1\n@options[:seen] = [@config.options[:workers], @config.environment]"
    configuration = load(text, above: { workers: [3, "command line"], environment: ["qa", "command line"] })
    assert_equal [3, "qa"], configuration.own[:seen]
  end

  def test_the_keys_of_plugins_are_kept
    configuration = load("@options[:metrics_url] = 'tcp://[::1]:9393'")
    assert_empty configuration.values
    assert_equal "tcp://[::1]:9393", configuration.options[:metrics_url]
    assert_equal ["tcp://[::1]:9393"], configuration.options.all_of(:metrics_url)
  end

  def test_what_is_refused_names_the_line
    assert_equal "2: workers must be a number or :auto, not \"few\"", complaint("\n@options[:workers] = 'few'")
    assert_match(/\A2: @options\[:before_fork\] cannot be set; use the verb/, complaint("\n@options[:before_fork] = []"))
    assert_match(/\A1: state_permission must be a permission such as 0640, not 4096/, complaint("state_permission 010000"))
    assert_match(/\A1: set_default_host is the host that port listens on, not "a:1"; server_name says/, complaint("set_default_host 'a:1'"))
    assert_match(/\A1: inject needs a block/, complaint("inject"))
  end

  def test_ports_listen_at_the_default_host
    any = Rondo::Address.any_host
    assert_equal ["tcp://127.0.0.1:1"], values("set_default_host '127.0.0.1'\nport 1")[:bind]
    assert_equal ["tcp://localhost:1", "tcp://[::1]:2"], values("port 1\nport 2, '::1'", port_host: "localhost")[:bind]
    assert_equal [Rondo::Address.tcp_uri(any, 1)], values("set_default_host nil\nport 1", port_host: "localhost")[:bind]
    assert_equal "127.0.0.1", values("set_default_host '127.0.0.1'\ntag default_host")[:tag]
  end

  # As files do that change what the command line says.
  def test_the_configuration_that_is_read_is_pumas
    text = "Puma.cli_config._options[:workers] = 4 if Puma.cli_config._options[:workers] == 2"
    assert_equal({ workers: 4 }, values("workers 2\n#{text}"))
    error = assert_raises(Rondo::ConfigurationError) { load(text, above: { workers: [2, "command line"] }) }
    assert_match(/:1: options\[:workers\] cannot be set here: the command line sets it\z/, error.message)
    assert_equal({ tag: "8" }, values('tag Puma::Const::VERSION[/\A\d/]'))
  ensure
    Rondo::PumaLibrary.configuration = nil
  end

  # An error of a plugin quotes what it was called on.
  def test_no_value_is_shown
    configuration = load("activate_control_app 'auto', auth_token: 'hidden'")
    refute_match(/hidden/, [configuration, configuration.options, configuration.options.user_options].inspect)
  end

  # In a process of its own, because ActiveSupport gives all objects its JSON.
  def test_no_value_is_in_json
    shown = <<~'RUBY'
      configuration = Rondo::Configuration.new
      configuration.set(:control_token, "hidden")
      %w[puma/launcher_view puma/current_server].each { |file| require "rondo/#{file}" }
      process = Struct.new(:token).new("hidden")
      puts [configuration, configuration.options, Rondo::LauncherView.new(configuration, nil, process),
            Rondo::CurrentServer.new(nil, process, configuration)].map { |each| JSON.parse(each.to_json) }
    RUBY
    names = %w[Configuration Configuration::PumaOptions LauncherView CurrentServer].map { |name| "#<Rondo::#{name}" }
    ["json", "active_support/all"].each do |library|
      out, = Open3.capture2e(RbConfig.ruby, "-Ilib", "-r#{library}", "-rrondo/config/configuration", "-e", shown)
      assert_equal names, out.lines.map { |line| line[/\A.*\w(?= ?>$)/] }, out
    end
  end

  def test_other_words
    assert_equal({ rackup: "config.ru", debug: true, state_permission: 0o640, tag: "x" },
                 values("rackup DefaultRackup\ndebug\nstate_permission 0o0640\ninject { tag 'x' }"))
    assert_equal 0o640, values("state_permission '640'")[:state_permission]
  end
end
