# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Every verb of Puma's configuration file: what Rondo does with it. A verb of a newer Puma has no row, and fails.

require "test_helper"
require "open3"
require "rondo/config/configuration"

class PumaVerbsTest < Minitest::Test
  # Where tools/install_puma puts the gems.
  GEMS = File.expand_path("../../../build/puma/gems", __dir__)

  # Verb => a line that uses it, and what comes of it: settings, a hook, another verb's settings, or a boot line that says
  # what is true anyway.
  SETTINGS = {
    "activate_control_app" => "'auto', { no_token: true }", "app" => "->(_) { [200, {}, []] }", "bind" => "'tcp://127.0.0.1:1'",
    "bind_to_activated_sockets" => "'only'", "clean_thread_locals" => "", "custom_logger" => "$stderr", "debug" => "",
    "directory" => "'/'", "drain_on_shutdown" => "false", "early_hints" => "", "enable_keep_alives" => "false", "environment" => "'test'",
    "fiber_per_request" => "", "fork_worker" => "", "first_data_timeout" => "5", "force_shutdown_after" => "5", "http_content_length_limit" => "5",
    "idle_timeout" => "5", "log_formatter" => "{ |line| line }", "log_requests" => "", "lowlevel_error_handler" => "->(*) {}",
    "max_fast_inline" => "5", "max_io_threads" => "5", "max_keep_alive" => "5", "mutate_stdout_and_stderr_to_sync_on_write" => "false",
    "persistent_timeout" => "5", "pidfile" => "'pid'", "port" => "1", "preload_app!" => "false", "quiet" => "",
    "rack_url_scheme" => "'https'", "rackup" => "'a.ru'", "raise_exception_on_sigterm" => "false", "restart_command" => "'again'",
    "set_remote_address" => ":localhost", "shutdown_debug" => "", "ssl_bind" => "'127.0.0.1', 1, { cert: 'a', key: 'b' }",
    "state_path" => "'state'", "state_permission" => "0o600", "stdout_redirect" => "'out'", "supported_http_methods" => "%w[GET]",
    "tag" => "'a'", "threads" => "1, 2", "worker_boot_timeout" => "5", "worker_check_interval" => "5",
    "worker_culling_strategy" => ":oldest", "worker_shutdown_timeout" => "5", "worker_timeout" => "60", "workers" => "2"
  }.freeze
  HOOKS = %w[after_booted after_refork after_stopped after_worker_boot after_worker_fork after_worker_shutdown before_fork before_refork
             before_restart before_thread_exit before_thread_start before_worker_boot before_worker_fork before_worker_shutdown on_booted
             on_refork on_restart on_stopped on_thread_exit on_thread_start on_worker_boot on_worker_fork on_worker_shutdown
             out_of_band].freeze
  SAID = { "extra_runtime_dependencies" => "%w[a]", "prune_bundler" => "", "silence_fork_callback_warning" => "", "silence_single_worker_warning" => "",
           "wait_for_less_busy_worker" => "0.1" }.freeze
  # Both: a setting where there is one, and a line for the rest.
  BOTH = { "io_selector_backend" => ":poll", "queue_requests" => "false" }.freeze
  # About others, or about the file itself.
  ABOUT_OTHERS = %w[clear_binds! cluster default_host get inject load plugin set_default_host single].freeze
  OF_PUMA_ITSELF = %w[_load_from _offer_plugins].freeze

  def before_setup
    super
    GC.stress = false # Puma is in another process
  end

  def evaluate(line)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "puma.rb")
      File.write(path, "#{line}\n")
      Rondo::Configuration.new(path)
    end
  end

  def verbs_of_puma
    found = Dir[File.join(GEMS, "ruby/*/{gems,extensions/*/*}/{puma,nio4r}-*")]
    skip "Puma is not installed: tools/install_puma does that" if found.empty?
    includes = found.flat_map { |folder| ["-I", folder, "-I", File.join(folder, "lib")] }
    out, err, status = Open3.capture3({ "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil }, RbConfig.ruby, *includes, "-e",
                                      'require "puma"; require "puma/dsl"; puts Puma::DSL.public_instance_methods(false)')
    assert_predicate status, :success?, err
    out.split
  end

  def test_every_verb_has_a_row
    rows = [*SETTINGS.keys, *HOOKS, *SAID.keys, *BOTH.keys, *ABOUT_OTHERS, *OF_PUMA_ITSELF]
    assert_equal rows.uniq, rows
    assert_equal verbs_of_puma.sort, rows.sort
  end

  def test_settings
    SETTINGS.merge(BOTH).each do |verb, arguments|
      configuration = evaluate(arguments.start_with?("{") ? "#{verb} #{arguments}" : "#{verb}(#{arguments})")
      refute_empty configuration.values, verb
      BOTH.key?(verb) ? assert_match(/\A#{verb}: /, configuration.notes.join) : assert_empty(configuration.notes, verb)
    end
  end

  def test_hooks
    HOOKS.each do |verb|
      configuration = evaluate("#{verb} { }")
      assert_equal 1, configuration.hooks.values.sum(&:size), verb
      assert_empty configuration.notes, verb
    end
  end

  # A line that says what is true anyway.
  def test_those_that_are_said
    SAID.each do |verb, arguments|
      configuration = evaluate("#{verb} #{arguments}")
      assert_empty configuration.values, verb
      assert_match(/\A#{verb}: /, configuration.notes.join)
    end
  end

  def test_those_about_others
    ABOUT_OTHERS.each { |verb| assert_includes Rondo::Configuration::Verbs.public_instance_methods(false), verb.to_sym }
    configuration = evaluate("single { quiet }\ncluster { silent }\ninject { bind 'tcp://127.0.0.1:1' }")
    assert_equal [false, true], configuration.later.map(&:first)
    assert_equal ["tcp://127.0.0.1:1"], configuration.values[:bind].first
  end
end
