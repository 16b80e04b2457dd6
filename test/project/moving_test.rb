# frozen_string_literal: true

# The right columns of docs/MOVING.md: each line of configuration loads, each option, verb of `rondo ctl`, variable and signal
# exists.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rondo"
require "rondo/command/ctl"
require "rondo/config/configuration"
require "tmpdir"

class MovingTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  # What is no setting: of nginx, systemd, Rack, and commands of the gem.
  OTHERS = %w[proxy_pass User= rack.upgrade rack.hijack config/rondo.rb].freeze

  def test_every_line_of_configuration_loads
    lines = spans.grep(/\A[a-z_0-9]+!?(?: |\z)/).grep_v(/\Arondo\b/) - OTHERS
    assert_operator lines.size, :>, 40
    assert_empty(lines.uniq.filter_map { |line| complaint(line) })
  end

  def test_every_option_and_verb_exists
    words = spans.grep(/\A(?:rondo\b|-)/)
    assert_operator words.size, :>, 15
    unknown = words.reject { |line| line.start_with?("rondo ctl") ? verb?(line.split[2]) : options?(line) }
    assert_empty unknown
  end

  def test_every_variable_and_signal_exists
    names = spans.grep(/\A[A-Z][A-Z_0-9]+\z/).uniq
    assert_operator names.size, :>, 8
    known = File.read(File.join(ROOT, "docs/CONFIGURATION.md")) + File.read(File.join(ROOT, "docs/DEPLOYMENT.md"))
    assert_empty(names.reject { |name| Signal.list.key?(name) || variables.include?(name) })
    assert_empty(names.reject { |name| known.include?("`#{name}`") })
  end

  def test_nothing_is_left_unread
    assert_empty(spans.grep_v(/\A(?:[a-z_0-9]+!?(?: .*)?|-.*|[A-Z][A-Z_0-9]+)\z/) - OTHERS)
  end

  private

  # Code spans of the last column of all tables.
  def spans
    @spans ||= File.readlines(File.join(ROOT, "docs/MOVING.md"), chomp: true).grep(/\A\| /).flat_map do |row|
      row.split(/(?<!\\)\|/).last.scan(/`([^`]+)`/).flatten.map { |span| span.gsub("\\|", "|") }
    end
  end

  # @return [String, nil] what the server says of the line
  def complaint(line)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "rondo.rb")
      File.write(path, "#{line}\n")
      Rondo::Configuration.new(path)
      nil
    end
  rescue Rondo::ConfigurationError => e
    "#{line}: #{e.message}"
  end

  def verb?(word)
    Rondo::Ctl::VERBS.include?(word)
  end

  def options?(line)
    known = "#{help} #{File.read(File.join(ROOT, "docs/CONFIGURATION.md"))} --once"
    line.split.grep(/\A-/).all? { |option| known.match?(/(?<![\w-])#{Regexp.escape(option)}(?![\w-])/) }
  end

  def help
    @help ||= Open3.capture2e(Gem.ruby, "-I#{File.join(ROOT, "lib")}", File.join(ROOT, "exe/rondo"), "--help").first
  end

  def variables
    rows = [*Rondo::Settings::SHELL.values.flat_map(&:env), *Rondo::Settings::CORE_NAMES.values.flat_map(&:env)]
    rows.compact
  end
end
