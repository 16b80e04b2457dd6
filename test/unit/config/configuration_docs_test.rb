# frozen_string_literal: true

# docs/CONFIGURATION.md is what its generator writes, and its examples are valid.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "tmpdir"
require "rondo/config/configuration"

class ConfigurationDocsTest < Minitest::Test
  ROOT = File.expand_path("../../..", __dir__)
  PAGE = File.join(ROOT, "docs/CONFIGURATION.md")

  def test_the_tables_are_up_to_date
    output, status = Open3.capture2e(RbConfig.ruby, File.join(ROOT, "tools/gen_configuration_docs"), "--check")
    assert status.success?, "#{output}run: rake generate"
  end

  def test_every_setting_is_there
    text = File.read(PAGE)
    names = Rondo::Settings::CORE.keys + Rondo::Settings::SHELL.keys
    assert_empty(names.reject { |name| text.include?("| `#{name}` |") })
  end

  def test_every_variable_is_there
    text = File.read(PAGE)
    names = [Rondo::Settings::SHELL, Rondo::Settings::CORE_NAMES].flat_map { |table| table.values.flat_map(&:env) }
    assert_empty(names.reject { |name| text.include?("`#{name}`") })
  end

  def test_the_example_loads
    example = File.read(PAGE)[/```ruby\n(bind .*?)```/m, 1]
    Dir.mktmpdir do |folder|
      path = File.join(folder, "rondo.rb")
      File.write(path, example)
      configuration = Rondo::Configuration.new(path)
      assert_empty configuration.notes
      assert_equal 20_000, configuration.values[:keep_alive_timeout_ms].first
    end
  end
end
