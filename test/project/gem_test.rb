# frozen_string_literal: true

# The gems as packages: what is in them, and what they say of themselves. test/gem installs them.
# SPDX-License-Identifier: MIT

require "test_helper"
require "bundler"
require "open3"
require "rubygems/package"
require "tmpdir"

class GemTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)

  def test_it_carries_what_it_needs_and_no_tests
    contents = files_of_the_package
    needed = Dir.glob("{ext,lib}/**/*.{c,h,def,rb}", base: ROOT) + Dir.glob("{exe/*,sig/**/*.rbs}", base: ROOT)
    refute_empty needed
    assert_empty needed - contents
    assert_empty contents.grep(%r{^(?:test|bench|build|tools)/|\.(?:o|so)$})
  end

  def test_the_other_gems_are_built_with_their_commands
    { "rondo-iodine" => %w[iodine], "rondo-up" => %w[up_ruby], "rondo-node" => %w[up up_node] }.each do |name, commands|
      folder = File.join(ROOT, name == "rondo-node" ? "node" : "gems/#{name}")
      spec = Gem::Specification.load(File.join(folder, "#{name}.gemspec"))
      assert_equal [commands, Rondo::VERSION], [spec.executables, spec.version.to_s]
      assert_equal tracked_files(folder).sort, (spec.files + ["#{name}.gemspec"]).sort
      assert(commands.all? { |command| File.executable?(File.join(folder, "exe", command)) })
    end
  end

  def test_where_its_sources_are_is_said_when_it_is_built
    command = [Gem.ruby, "-e", 'spec = Gem::Specification.load("rondo.gemspec"); print spec.homepage, spec.metadata.keys.sort']
    bare, = Open3.capture2e({ "RONDO_HOMEPAGE" => nil }, *command, chdir: ROOT)
    assert_equal '["rubygems_mfa_required"]', bare
    said, = Open3.capture2e({ "RONDO_HOMEPAGE" => "https://rondo.example" }, *command, chdir: ROOT)
    assert_equal 'https://rondo.example["bug_tracker_uri", "changelog_uri", "documentation_uri", "rubygems_mfa_required", ' \
                 '"source_code_uri"]', said
  end

  private

  def files_of_the_package
    Dir.mktmpdir("rondo-gem") do |folder|
      package = File.join(folder, "rondo.gem")
      Bundler.with_unbundled_env do
        output, status = Open3.capture2e(Gem.ruby, "-S", "gem", "build", "--output", package, "rondo.gemspec", chdir: ROOT)
        assert status.success?, output
      end
      Gem::Package.new(package).contents
    end
  end

  def tracked_files(folder)
    Dir.glob("**/*", base: folder).grep_v(%r{\Anode_modules/}).select { |path| File.file?(File.join(folder, path)) }
  end
end
