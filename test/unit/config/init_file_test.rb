# frozen_string_literal: true

# The written configuration file shows the defaults, and changes nothing until a line is uncommented.
# SPDX-License-Identifier: MIT

require "test_helper"
require "stringio"
require "tmpdir"
require "rondo/config/configuration"
require "rondo/config/init_file"

class InitFileTest < Minitest::Test
  Settings = Rondo::Settings

  def setup
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "config/rondo.rb")
    @out = StringIO.new
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def write(full: true, **options)
    Rondo::InitFile.write(@path, out: @out, full: full, **options)
  end

  def test_it_says_where
    assert_equal 0, write
    assert_equal "wrote #{@path}\n", @out.string
  end

  def test_it_changes_nothing
    write
    configuration = Rondo::Configuration.new(@path)
    assert_empty configuration.values
    assert_empty configuration.notes
  end

  def test_every_line_holds_when_uncommented
    values = uncommented
    defaults = Settings::CORE.transform_values { |row| row[:default] }
    assert_equal defaults, values.slice(*defaults.keys)
    assert_match(/:9292\z/, values[:bind].last)
  end

  def test_choices_are_words
    write
    assert_includes File.read(@path), "\n# slow_client :close\n"
  end

  def test_every_setting_with_a_default_is_there
    defaults = Settings::SHELL.transform_values(&:default).reject { |_, value| value.nil? || value == [] }
    defaults = defaults.except(:port, :tmp_restart) # an address, and a plugin that cannot be undone
    assert_equal defaults, uncommented.slice(*defaults.keys)
  end

  def test_the_page_changes_nothing_and_fits_a_screen_or_two
    write(full: false)
    configuration = Rondo::Configuration.new(@path)
    assert_empty configuration.values
    lines = File.readlines(@path, chomp: true)
    assert_operator lines.size, :<, 80
    assert_operator lines.map(&:size).max, :<=, 120
  end

  def test_every_line_of_the_page_holds_when_uncommented
    values = uncommented(full: false)
    assert_equal [30_000, 65_000, 60, 1 << 30], values.values_at(:drain_timeout_ms, :keep_alive_timeout_ms, :worker_timeout, :max_body_bytes)
    core = values.slice(*Settings::CORE.keys)
    assert_equal Settings::CORE.slice(*core.keys).transform_values { |row| row[:default] }, core
    assert_equal "auto", values[:workers]
    assert_operator values.size, :>, 20
  end

  def test_the_page_names_values_as_people_write_them
    write(full: false)
    text = File.read(@path)
    ['# max_body_bytes "1g"', '# drain_timeout "30s"', "# threads 1, 5", '# worker_timeout "60s"', '# bind "tcp://0.0.0.0:9292"'].each do |line|
      assert_includes text, "\n#{line}\n"
    end
  end

  def test_it_overwrites_only_by_force
    write
    File.write(@path, "mine")
    error = assert_raises(Rondo::ConfigurationError) { write }
    assert_equal "#{@path} exists; --force overwrites it", error.message
    assert_equal "mine", File.read(@path)
    write(force: true)
    refute_equal "mine", File.read(@path)
  end

  def test_where_nothing_can_be_written
    File.write(File.join(@folder, "config"), "")
    error = assert_raises(Rondo::ConfigurationError) { write }
    assert_match(/\Acannot write /, error.message)
  end

  private

  # The settings of the file when every line of it is uncommented.
  def uncommented(**options)
    write(**options)
    File.write(@path, File.read(@path).gsub(/^# ([a-z][a-z0-9_]*!? .*)$/) { verb?($1) ? $1 : $& })
    Rondo::Configuration.new(@path).values.transform_values(&:first)
  end

  # A line of the file that is a verb and its value, not prose.
  def verb?(line)
    Rondo::Configuration::Verbs.method_defined?(line[/\A\w+!?/], false)
  end
end
