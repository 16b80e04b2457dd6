# frozen_string_literal: true

# A setting is one row: the command line, the configuration file, the environment, `rondo init` and the documentation
# all read it from the table. A row that is added here, in another process, proves that no other code has to know of it.
# SPDX-License-Identifier: MIT

require "test_helper"
require "json"
require "open3"
require "tmpdir"
require "rondo/command/cli"
require "rondo/config/init_file"

class OptionsTest < Minitest::Test
  ROOT = File.expand_path("../../..", __dir__)
  Settings = Rondo::Settings
  Verbs = Rondo::Configuration::Verbs

  def test_rows_are_whole
    Settings::ROWS.each do |row|
      assert Settings::KINDS.key?(row.kind), row.name
      refute_empty row.doc, row.name
      assert row.choices, row.name if row.kind == :choice
      assert row.help && row.group, row.name if row.flag
    end
    assert_equal Settings::ROWS.size, Settings::SHELL.size
    assert_empty Settings::CORE_NAMES.keys - Settings::CORE.keys
  end

  # Setting and verb have the same name, or the file of `rondo init` shows how the verb sets it.
  def test_verbs_are_methods
    verbs = Settings::ROWS.filter_map(&:verb_name) + Settings::CORE_NAMES.values.filter_map(&:verb) + Settings::CORE.keys
    assert_empty(verbs.reject { |verb| Verbs.public_method_defined?(verb, false) })
  end

  def test_options_are_in_the_help_and_in_the_docs
    help = help_text
    help_of_certificates = help_text("cert")
    docs = File.read(File.join(ROOT, "docs/CONFIGURATION.md"))
    [*Settings::ROWS, *Settings::CORE_NAMES.values].select(&:flag).each do |row|
      shown = row.group == :certificates ? help_of_certificates : help
      row.forms.grep(/\A--/).each { |form| assert_includes shown, form }
      assert_includes docs, "`#{row.flag}`"
    end
  end

  def test_options_belong_to_groups_that_the_help_has
    groups = [*Settings::ROWS, *Settings::CORE_NAMES.values].filter_map(&:group).uniq
    assert_empty groups - %i[where processes limits certificates logs]
  end

  NEW_ROW = <<~RUBY
    require "rondo/config/options"
    module Rondo::Settings
      added = row(:patience, :seconds, 7, "s", "how long it waits", flag: "--patience SECONDS", group: :limits,
                                                                  help: "waits so long (%s)", env: %w[RONDO_PATIENCE])
      rows = [*ROWS, added].freeze
      core = CORE.merge(new_limit_bytes: { default: 2048, min: 1, max: 4096, unit: "bytes", doc: "a new limit" }.freeze)
      { ROWS: rows, SHELL: rows.to_h { |row| [row.name, row] }, CORE: core }.each do |name, table|
        remove_const(name)
        const_set(name, table.freeze)
      end
    end
  RUBY

  PROBE = <<~RUBY
    require "json"
    require "rondo/command/cli"
    require "rondo/config/init_file"
    class Probe < Rondo::CLI
      def serve
        @out.puts(JSON.generate(%i[patience new_limit_bytes].map { |name| [settings[name], settings.source(name)] }))
        0
      end
    end
    exit Probe.new(ARGV).run
  RUBY

  def test_a_row_that_is_added_is_read_from_all_sources
    assert_equal [[[7, "default"], [2048, "default"]], 0], probe
    assert_equal [[[3, "RONDO_PATIENCE"], [2048, "default"]], 0], probe(env: { "RONDO_PATIENCE" => "3" })
    assert_equal [[[1.5, "rondo.rb"], [1024, "rondo.rb"]], 0], probe(file: "patience 1.5\nnew_limit_bytes '1k'\n")
    assert_equal [[[9, "command line"], [2048, "default"]], 0],
                 probe("--patience", "9", file: "patience 1", env: { "RONDO_PATIENCE" => "3" })
  end

  def test_a_row_that_is_added_refuses_what_is_not_of_its_kind
    assert_equal ["rondo: patience must be #{Rondo::Settings::TIME_FORMS}, not \"x\"\n", 2], complaint("--patience", "x")
    assert_equal ["rondo: RONDO_PATIENCE must be #{Rondo::Settings::TIME_FORMS}, not \"x\"\n", 1],
                 complaint(env: { "RONDO_PATIENCE" => "x" })
    assert_equal ["rondo: rondo.rb:1: patience must not be negative\n", 1], complaint(file: "patience -1")
    assert_equal ["rondo: rondo.rb:1: new_limit_bytes 5000 is not between 1 and 4096 bytes\n", 1],
                 complaint(file: "new_limit_bytes 5000")
  end

  def test_a_row_that_is_added_is_in_the_help_and_in_the_file_of_init
    out, = in_a_process("exit Rondo::CLI.new(%w[--help]).run")
    assert_match(/--patience SECONDS +waits so long \(7\)/, out)
    out, = in_a_process("puts Rondo::InitFile.text")
    assert_includes out, "# How long it waits (s).\n# patience 7\n"
    assert_includes out, "# A new limit (bytes).\n# new_limit_bytes \"2k\"\n"
  end

  def test_a_row_that_is_added_is_in_the_docs
    generator = File.read(File.join(ROOT, "tools/gen_configuration_docs"))[/^module ConfigurationTables.*?^end$/m]
    out, = in_a_process("#{generator}\nputs ConfigurationTables.shell, ConfigurationTables.core")
    assert_includes out, "| `patience` | `patience` | `--patience SECONDS` | `RONDO_PATIENCE` | `7` | how long it waits (s) |"
    assert_includes out, "| `new_limit_bytes` | `2k` | 1 to 4k | a new limit |"
  end

  private

  def help_text(*words)
    out = StringIO.new
    Rondo::CLI.new([*words, "--help"], out: out).run
    out.string
  end

  def in_a_process(script, *words, env: {}, file: nil)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "rondo.rb"), file.to_s)
      code = "#{NEW_ROW}#{PROBE.lines.take(3).join}#{script}"
      Open3.capture3(env, RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-e", code, "--", *words, chdir: folder)
    end
  end

  def run_probe(words, **given)
    in_a_process(PROBE.lines.drop(3).join, "-C", "rondo.rb", *words, **given)
  end

  def probe(*words, **given)
    out, err, status = run_probe(words, **given)
    assert_empty err
    [JSON.parse(out), status.exitstatus]
  end

  def complaint(*words, **given)
    _, err, status = run_probe(words, **given)
    [err, status.exitstatus]
  end
end
