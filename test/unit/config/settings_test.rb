# frozen_string_literal: true

# Where a value comes from, and which forms it may have.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/config/settings"

class SettingsTest < Minitest::Test
  Settings = Rondo::Settings

  def resolved(*layers)
    Settings::Resolved.new(*layers)
  end

  def test_the_first_layer_that_says_something_wins
    layers = [{ port: [1, "command line"] }, { port: [2, "rondo.rb"], tag: ["x", "rondo.rb"] },
              { port: [3, "PORT"], pidfile: ["p", "PIDFILE"] }]
    settings = resolved(*layers)
    assert_equal [1, "command line"], [settings[:port], settings.source(:port)]
    assert_equal ["x", "rondo.rb"], [settings[:tag], settings.source(:tag)]
    assert_equal ["p", "PIDFILE"], [settings[:pidfile], settings.source(:pidfile)]
    assert_equal [9292, "default"], [resolved[:port], resolved.source(:port)]
  end

  def test_the_environment_that_finds_a_configuration_file
    offered = { environment: ["offered", "default of the program"] }
    typed = { environment: ["typed", "command line"] }
    assert_equal "typed", Settings.environment(typed, offered, env: { "APP_ENV" => "a" })
    all = { "APP_ENV" => "a", "RACK_ENV" => "b", "RAILS_ENV" => "c" }
    assert_equal "a", Settings.environment({}, offered, env: all)
    assert_equal "c", Settings.environment({}, offered, env: { "APP_ENV" => " ", "RAILS_ENV" => "c" })
    assert_equal "offered", Settings.environment({}, offered, env: {})
    assert_equal "development", Settings.environment({}, env: {})
  end

  def test_a_value_of_false_or_nil_wins_too
    settings = resolved({ quiet: [false, "command line"] }, { quiet: [true, "file"] })
    refute settings[:quiet]
    assert settings.given?(:quiet)
    refute settings.given?(:silent)
  end

  def test_defaults_of_the_core_and_its_given_settings
    settings = resolved({ backlog: [5, "file"], port: [1, "file"] })
    assert_equal 5, settings[:backlog]
    assert_equal Settings::CORE[:max_body_bytes][:default], settings[:max_body_bytes]
    assert_equal({ backlog: 5 }, settings.core)
    assert_raises(KeyError) { settings[:nothing] }
  end

  def test_rows_of_the_core_are_whole
    Settings::CORE.each do |name, row|
      assert_includes row[:min]..row[:max], row[:default], name
      refute_empty row[:doc], name
      choices = Settings.choices(row)
      assert_includes %w[bytes count ms us bytes/s bool], row[:unit], name unless choices
      assert_equal choices.size - 1, row[:max], name if choices
    end
  end

  def test_numbers_with_names
    assert_equal 1, Settings.core_value(:slow_client, :drop_oldest)
    assert_equal 2, Settings.core_value(:slow_client, "drop_newest")
    assert_equal 0, Settings.core_value(:slow_client, 0)
    assert_raises(ArgumentError) { Settings.core_value(:slow_client, "wait") }
  end

  def test_no_name_twice
    assert_empty Settings::SHELL.keys & Settings::CORE.keys
  end

  {
    "0" => 0, "64b" => 64, "64k" => 65_536, "64K" => 65_536, "10m" => 10 << 20, "1g" => 1 << 30,
    "5kb" => 5120, " 7B " => 7, "1024" => 1024, 12 => 12
  }.each do |text, bytes|
    define_method("test_#{text.inspect}_is_#{bytes}_bytes") { assert_equal bytes, Settings.bytes(text) }
  end

  { 0 => "0", 1000 => "1000", 1024 => "1k", 114_688 => "112k", 10 << 20 => "10m", (1 << 30) + 1 => "1073741825",
    3 << 40 => "3072g" }.each do |bytes, text|
    define_method("test_#{bytes}_bytes_are_#{text}") { assert_equal text, Settings.size(bytes) }
  end

  def test_defaults_as_options_take_them
    texts = %i[port environment workers max_body_bytes keep_alive_timeout_ms max_threads].map do |name|
      Settings.default(name)
    end
    assert_equal ["9292", "development", "0", "1g", "65", Settings::CORE[:max_threads][:default].to_s], texts
  end

  ["", "k", "b", "1", "1023", "1.5g", "-1", "10 apples", "1t", nil, "1\n2"].each do |text|
    define_method("test_#{text.inspect}_is_no_size") do
      assert_raises(ArgumentError) { Settings.bytes(text) }
    end
  end

  def environment(**variables)
    Settings.from_environment(variables.transform_keys(&:to_s))
  end

  def test_environment_variables
    assert_equal({ port: [8080, "PORT"], pidfile: ["x.pid", "PIDFILE"], host: ["::1", "BINDING"] },
                 environment(PORT: " 8080 ", PIDFILE: "x.pid", BINDING: "::1"))
  end

  def test_the_first_variable_that_is_set_wins
    assert_equal ["a", "APP_ENV"], environment(RAILS_ENV: "c", RACK_ENV: "b", APP_ENV: "a")[:environment]
    assert_equal ["b", "RACK_ENV"], environment(RAILS_ENV: "c", RACK_ENV: "b", APP_ENV: " ")[:environment]
    assert_equal ["c", "RAILS_ENV"], environment(RAILS_ENV: "c")[:environment]
    assert_equal [3, "RAILS_MAX_THREADS"], environment(PUMA_MAX_THREADS: "9", RAILS_MAX_THREADS: "3")[:max_threads]
    assert_equal [300, "RONDO_FIBERS"], environment(RONDO_FIBERS: "300")[:fibers]
  end

  def test_variables_of_the_core
    assert_equal({ min_threads: [1, "MIN_THREADS"], keep_alive_timeout_ms: [20_000, "PUMA_PERSISTENT_TIMEOUT"] },
                 environment(MIN_THREADS: "0", PUMA_PERSISTENT_TIMEOUT: "20"))
    error = assert_raises(Rondo::ConfigurationError) { environment(MAX_THREADS: "0") }
    assert_equal "MAX_THREADS must be between 1 and 1024, not 0", error.message
  end

  def test_no_more_threads_at_least_than_at_most
    settings = Settings::Resolved.new({ min_threads: [8, "test"] }, { max_threads: [3, "test"] })
    assert_equal({ min_threads: 3, max_threads: 3 }, settings.core)
  end

  def test_web_concurrency
    assert_equal ["auto", "WEB_CONCURRENCY"], environment(WEB_CONCURRENCY: "auto")[:workers]
    assert_equal [4, "WEB_CONCURRENCY"], environment(WEB_CONCURRENCY: "4")[:workers]
    assert_empty environment(WEB_CONCURRENCY: "")
  end

  def test_a_variable_that_is_no_number_is_named
    error = assert_raises(Rondo::ConfigurationError) { environment(PORT: "http") }
    assert_equal 'PORT must be a number, not "http"', error.message
    assert_raises(Rondo::ConfigurationError) { environment(PORT: "auto") }
  end

  def test_what_a_server_takes
    options = resolved({ url_scheme: ["https", "file"], log_requests: [true, "file"],
                         log_format: ["json", "file"], linger_bytes: [0, "file"] }).server_options(:log)
    assert_equal "https", options[:url_scheme]
    assert_equal [:json, $stdout, :log], options.values_at(:request_log_format, :request_log, :log)
    to_stderr = { log_requests: [true, "file"], request_log_output: ["stderr", "file"] }
    assert_equal [$stderr, nil], [resolved(to_stderr), resolved({})].map { |each| each.server_options(:log)[:request_log] }
    assert_equal 0, options[:linger_bytes]
    assert_equal "development", options[:environment]
    assert_nil resolved.server_options(:log)[:request_log]
  end

  def test_a_server_takes_it
    app = ->(_env) { [200, {}, []] }
    assert_kind_of Rondo::Server, Rondo::Server.new(app, **resolved.server_options(Rondo::Logger.errors_only))
  end

  def test_the_format_of_lines_is_one_of_two
    error = assert_raises(Rondo::ConfigurationError) { resolved({ log_format: [:xml, "file"] }).json? }
    assert_equal 'log_format must be common or json, not "xml"', error.message
  end
end
