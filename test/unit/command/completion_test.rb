# frozen_string_literal: true

# The scripts for shells and the man page, read by these programs where they are installed.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "stringio"
require "tempfile"
require "rondo/boot/inherited"
require "rondo/command/completion"

class CompletionTest < Minitest::Test
  PAGE = File.expand_path("../../../man/rondo.1", __dir__)

  def complete(*words)
    out, err = StringIO.new, StringIO.new
    [Rondo::CLI.new(["completion", *words], out: out, err: err).run, out.string, err.string]
  end

  def script(shell)
    code, out, err = complete(shell)
    assert_equal [0, ""], [code, err]
    out
  end

  def bash(*words)
    line = "COMP_WORDS=(#{words.map(&:inspect).join(" ")}); COMP_CWORD=#{words.size - 1}; _rondo; echo \"${COMPREPLY[@]}\""
    output, status = Open3.capture2e("bash", "--norc", stdin_data: "#{script("bash")}\n#{line}\n")
    assert status.success?, output
    output.split
  end

  def test_bash_completes_commands_verbs_and_options
    assert_equal %w[check cert ctl completion], bash("rondo", "c")
    assert_equal %w[restart refork reload-worker-directory reopen-log reload-certs ready].sort, bash("rondo", "ctl", "re").sort
    assert_equal %w[bash], bash("rondo", "completion", "b")
    assert_equal %w[--port --preload --public --print --plugin --pidfile --prune-bundler].sort, bash("rondo", "-w", "2", "--p").sort
    assert_empty bash("rondo", "-C", "x")
  end

  def test_every_option_is_in_every_script
    names = Rondo::Completion.sections.values.flatten.flat_map(&:names)
    assert_operator names.size, :>, 60
    %w[bash zsh].each { |shell| names.each { |name| assert_includes script(shell), name } }
    names.grep(/\A--/).each { |name| assert_match(/ -l #{name.delete_prefix("--")}(?: |$)/, script("fish")) }
  end

  def test_the_other_shells_read_their_scripts
    { "zsh" => %w[zsh -n], "fish" => %w[fish --no-execute] }.each do |shell, command|
      next unless system("command -v #{shell} >/dev/null")

      Tempfile.create("completion") do |file|
        File.write(file, script(shell))
        output, status = Open3.capture2e(*command, file.path)
        assert status.success?, output
        assert_empty output
      end
    end
  end

  def test_what_is_no_shell
    assert_equal [2, "", "rondo: unknown shell fisch; did you mean fish?; use one of bash, zsh, fish\n"], complete("fisch")
    assert_equal 2, complete("bash", "x").first
    code, out, = complete
    assert_equal 0, code
    assert_match(/\AUsage: rondo completion bash \| zsh \| fish$/, out)
  end

  def test_every_command_has_its_words
    assert_equal Rondo::Application::COMMANDS, Rondo::Completion.commands.keys
    assert_empty Rondo::Completion::COMMANDS.keys - Rondo::Application::COMMANDS
  end

  def test_the_man_page_has_every_option
    text = File.read(PAGE).gsub("\\-", "-")
    Rondo::Completion.sections.values.flatten.flat_map(&:names).each { |name| assert_includes text, "\\fB#{name}\\fR" }
  end

  def test_programs_read_the_man_page_without_a_warning
    commands = { "groff" => ["groff", "-man", "-Tutf8", "-ww", PAGE], "mandoc" => ["mandoc", "-T", "lint", "-W", "warning", PAGE] }
    commands = commands.select { |program, _| system("command -v #{program} >/dev/null") }
    skip "neither groff nor mandoc is there" if commands.empty?
    # The page has no date, so that it is the same whenever it is made.
    said = commands.each_value.flat_map { |command| Open3.capture3(*command).then { |out, err, _| [*(out if command.first == "mandoc"), err] } }
    assert_empty said.join.lines.grep(/warning|error/i).grep_v(/missing date/)
  end
end
