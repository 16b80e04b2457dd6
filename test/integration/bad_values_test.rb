# frozen_string_literal: true

# Every value is checked before the application is loaded: each option with a bad value ends with one line, and the
# application has left no trace. A new option needs a row here. Verbs and variables are checked in this process.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "rondo/boot/inherited"
require "rondo/command/cli"

class BadValuesTest < ShellCase
  Settings = Rondo::Settings
  NOWHERE = "/dev/null/nowhere" # root cannot make it either
  DOMAIN = %w[--tls-domain a.example].freeze

  # Option => [bad value, what the line says, further words].
  OPTIONS = {
    "--bind" => ["foo:bar", /cannot listen on foo:bar: expected tcp:/], "--port" => ["x", /port must be a number up to 65535, not "x"/],
    "--cert" => [NOWHERE, /cannot listen on ssl:/], "--key" => [NOWHERE, /cannot listen on ssl:/],
    "--public" => [NOWHERE, /public: cannot read the folder/], "--x-sendfile-root" => [NOWHERE, /x_sendfile_root: cannot read/],
    "--workers" => ["many", /workers must be a number or auto, not "many"/], "--fibers" => ["x", /fibers must be a number/],
    "--idle-timeout" => ["soon", /idle_timeout must be a number of seconds, or a time such as "500ms", "30s"/],
    "--dir" => [NOWHERE, /cannot go to the directory/], "--pidfile" => [NOWHERE, /cannot write/], "--state" => [NOWHERE, /cannot write/],
    "--control-url" => ["foo", /control server: cannot listen on foo/], "--control-token" => ["ü", /control_token must be/, "--control-url", "auto"],
    "--redirect-stdout" => [NOWHERE, /cannot write/], "--redirect-stderr" => [NOWHERE, /cannot write/],
    "--tls-domain" => ["*.example", /tls_domain must be names of hosts/], "--tls-email" => ["ops", /tls_email must be an address such as/, *DOMAIN],
    "--tls-directory" => ["http://x", /tls_directory must be an https/, *DOMAIN],
    "--tls-directory-ca" => [NOWHERE, /tls_directory_ca: cannot read/, *DOMAIN],
    "--tls-eab-key-file" => [NOWHERE, /tls_eab_key_file: cannot read/, *DOMAIN], "--tls-storage" => [NOWHERE, /tls_storage: cannot write/, *DOMAIN],
    "--tls-port" => ["x", /tls_port must be a number/], "--tls-http-port" => ["x", /tls_http_port must be a number/],
    "--redis" => ["foo", /this is not the address of a Redis server: foo/],
    "--redis-streams" => ["foo", /this is not the address of a Redis server: foo/, "-w", "1"], "--config" => [NOWHERE, /cannot read/],
    "--threads" => ["4:2", /the minimum is above the maximum/], "--plugin" => ["nowhere", /plugin nowhere: no gem has/],
    "--keep-alive" => ["soon", /keep_alive_timeout_ms must be a number of seconds, or a time such as "500ms", "30s"/],
    "--max-body" => ["20x", /max_body_bytes must be a size such as "512k", "20m" or "1g", not "20x"/], "--max-head" => ["1b", /max_head_bytes 1b is not between/]
  }.freeze
  # Address of Redis => what the line says.
  REDIS = {
    "redis+sentinel://127.0.0.1" => /this is not the address of a Redis server: redis\+sentinel:..127\.0\.0\.1$/,
    "redis+cluster://:secret@h:0" => /this is not the address of a Redis server: redis\+cluster:..h:0$/,
    "redis+cluster://h?master=x" => /the address of Redis has an option that is none: master$/,
    "redis://h?sentinel_password=secret" => /the address of Redis: sentinel_password needs an address with \+sentinel$/,
    "redis+sentinel://h/main?sentinel_tls=maybe" => /the address of Redis: sentinel_tls is yes or no$/,
    "redis://h?password_file=#{NOWHERE}" => /Redis: cannot read #{NOWHERE}: Not a directory$/,
    "redis+sentinel://h/main?sentinel_password_file=/dev/null" => %r{Redis: not a file: /dev/null$},
    "rediss://h?ca_file=#{NOWHERE}" => /Redis: cannot read #{NOWHERE}: Not a directory$/,
    "rediss://h?cert=#{__FILE__}" => /Redis: the certificates of the address cannot be used: /,
    "redis://h?key=#{__FILE__}" => /the address of Redis: key needs an address with rediss$/
  }.freeze
  # Any text is a value of these, or a list of folders that may come to be.
  FREE = %w[--environment --tag --tls-eab-kid --restart-cmd --include --extra-runtime-dependencies].freeze
  # Further words for an address: its place has to be there.
  PLACES = { "tcp://nowhere.invalid:0" => /cannot listen on tcp:..nowhere\.invalid:0: \S/,
             "unix:///dev/null/x/app.sock" => %r{cannot listen on unix:///dev/null/x/app\.sock: Not a directory} }.freeze

  def setup
    super
    write "config.ru", "File.write('loaded', '')\n#{HELLO}"
  end

  OPTIONS.each do |option, (value, line, *more)|
    define_method("test_#{option}") { assert_refused line, "-p", "0", *more, option, value }
  end

  def test_places_of_addresses
    PLACES.each { |uri, line| assert_refused line, "-b", uri }
  end

  def test_addresses_of_redis
    REDIS.each { |address, line| refute_includes assert_refused(line, "-p", "0", "-r", address).err, "secret" }
  end

  def test_a_cluster_ends_before_it_loads_as_well
    %w[--bind --pidfile --control-url --tls-storage].each do |option|
      value, line, *more = OPTIONS.fetch(option)
      assert_refused line, "-w", "1", "-p", "0", *more, option, value
    end
  end

  def test_every_option_with_a_value_is_here
    help = rondo("--help").out + rondo("cert", "--help").out
    options = help.scan(/(--[a-z-]+) [A-Z]+(?:[\s:]|$)/).flatten.uniq
    assert_operator options.size, :>, 30
    assert_equal [], options - OPTIONS.keys - FREE
  end

  ANY = %i[any object switch].freeze # what a program may put there

  def test_verbs_with_a_bad_value_name_the_line
    verbs = Settings::ROWS.reject { |row| [*ANY, :secrets].include?(row.kind) || row.verb.nil? || row.verb =~ /\s/ }.map(&:verb_name)
    verbs = verbs.uniq - %w[bind activate_control_app stdout_redirect set_remote_address restart_command shutdown_debug]
    [*verbs, *Settings::CORE.keys, *Settings::CORE_NAMES.values.filter_map(&:verb), "threads"].each do |verb|
      path = write("bad.rb", "#{verb} Object\n")
      error = assert_raises(Rondo::ConfigurationError, verb) { Rondo::Configuration.new(path) }
      assert_match(/\A#{path}:1: .*not Object/, error.message)
      assert_equal 1, error.message.lines.size
    end
  end

  def test_variables_with_a_bad_value_are_named
    rows = Settings::CORE_NAMES.merge(Settings::SHELL.reject { |_, row| %i[any text path paths written_file secrets].include?(row.kind) })
    rows.values.flat_map(&:env).each do |variable|
      error = assert_raises(Rondo::ConfigurationError, variable) { Settings.from_environment({ variable => "*?" }) }
      assert_match(/\A#{variable} must be .*\*\?/, error.message)
    end
  end

  # A line about a secret names the setting, and does not show the secret.
  def test_secrets_are_not_shown
    Settings::SHELL.select { |_, row| row.kind == :secrets }.each_value do |row|
      ["Object", "'hidden'", "['hidden']", "nil", "5"].each do |value|
        path = write("bad.rb", "#{row.verb_name} #{value}\n")
        error = assert_raises(Rondo::ConfigurationError, value) { Rondo::Configuration.new(path) }
        assert_equal "#{path}:1: #{row.verb_name} must be 1 to 16 Strings of 16 bytes or more", error.message
      end
      error = assert_raises(Rondo::ConfigurationError) { Settings.from_environment({ row.env.first => "hidden" }) }
      assert_equal "#{row.env.first} must be 1 to 16 Strings of 16 bytes or more", error.message
    end
  end

  private

  def assert_refused(line, *words)
    result = rondo("-q", *words)
    refute_equal 0, result.code, words.inspect
    assert_match line, result.err
    assert_match(/\Arondo: .*\n\z/, result.err, "one line")
    assert_empty result.out
    refute_path_exists File.join(@folder, "loaded"), words.inspect
    result
  end
end
