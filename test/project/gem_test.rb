# frozen_string_literal: true

# The gem: built, installed into an empty folder the way `gem install rondo` does it, and its
# executable serves an application.
# SPDX-License-Identifier: MIT

require "test_helper"
require "bundler"
require "fileutils"
require "net/http"
require "open3"
require "support/server_process"
require "tmpdir"

class GemTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  Installed = Struct.new(:home, :package, :log, keyword_init: true)

  # Built and installed once for all tests.
  def self.installed
    @installed ||= begin
      home = Dir.mktmpdir("rondo-gem")
      at_exit { FileUtils.rm_rf(home) }
      Bundler.with_unbundled_env { install_into(home) }
    end
  end

  def self.install_into(home)
    package = File.join(home, "rondo.gem")
    log = run_gem("build", "--output", package, "rondo.gemspec")
    log << run_gem("install", "--local", "--no-document", *dependencies, environment: environment(home)) unless
      dependencies.empty?
    log << run_gem("install", *("--local" unless dependencies.empty?), "--no-document", package,
                   environment: environment(home))
    Installed.new(home: home, package: package, log: log)
  end

  # Gems that Bundler fetched before, so that the test needs no registry.
  def self.dependencies
    name = Gem.loaded_specs.fetch("rack").full_name
    Gem.path.map { |path| File.join(path, "cache", "#{name}.gem") }.select { |path| File.file?(path) }.first(1)
  end

  def self.environment(home)
    { "GEM_HOME" => home, "GEM_PATH" => home }
  end

  def self.run_gem(*arguments, environment: {})
    output, status = Open3.capture2e(environment, Gem.ruby, "-S", "gem", *arguments, chdir: ROOT)
    raise "gem #{arguments.join(" ")}:\n#{output}" unless status.success?

    output
  end

  def test_it_compiles_during_install
    home = self.class.installed.home
    refute_empty Dir[File.join(home, "extensions", "**", "rondo", "rondo.so")], self.class.installed.log
  end

  def test_it_carries_no_tests_and_no_build_products
    contents = Bundler.with_unbundled_env { self.class.run_gem("specification", self.class.installed.package, "files") }
    assert_includes contents, "ext/rondo/extconf.rb"
    assert_includes contents, "exe/rondo"
    refute_match(%r{^- (?:test|bench|build|tools)/|\.(?:o|so)$}, contents)
  end

  def test_the_other_gems_are_built_with_their_commands
    { "rondo-iodine" => %w[iodine], "rondo-up" => %w[up up_node up_ruby] }.each do |name, commands|
      folder = File.join(ROOT, "gems", name)
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

  def test_its_executable_says_its_version
    output, status = capture(executable, "--version")
    assert status.success?, output
    assert_includes output, Rondo::VERSION
  end

  def test_its_executable_serves
    Bundler.with_unbundled_env do
      with_command(executable) do
        ServerProcess.run(File.join(ROOT, "examples/hello.ru"), env: environment) do |server|
          assert_equal "Hello, World!\n", Net::HTTP.get(URI(server.url))
        end
      end
    end
  end

  private

  def tracked_files(folder)
    Dir.glob("**/*", base: folder).select { |path| File.file?(File.join(folder, path)) }
  end

  def executable
    File.join(self.class.installed.home, "bin", "rondo")
  end

  def environment
    self.class.environment(self.class.installed.home)
  end

  def capture(*command)
    Bundler.with_unbundled_env { Open3.capture2e(environment, *command) }
  end

  def with_command(command)
    before = ENV.fetch("RONDO_TEST_SERVER", nil)
    ENV["RONDO_TEST_SERVER"] = command
    yield
  ensure
    ENV["RONDO_TEST_SERVER"] = before
  end
end
