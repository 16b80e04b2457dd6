# frozen_string_literal: true

# The gem, installed into an empty folder the way `gem install rondo` does it: it compiles, and its
# executable serves an application.
# SPDX-License-Identifier: MIT

require "test_helper"
require "bundler"
require "fileutils"
require "net/http"
require "open3"
require "support/server_process"
require "tmpdir"

class GemInstallTest < Minitest::Test
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

  def test_its_executable_says_its_version
    output, status = capture(executable, "--version")
    assert status.success?, output
    assert_includes output, Rondo::VERSION
  end

  # As the README says it: no registry has the gem, and Bundler finds the installed one.
  def test_bundler_adds_it
    Dir.mktmpdir do |folder|
      gemfile = File.join(folder, "Gemfile")
      FileUtils.touch(gemfile)
      Bundler.with_unbundled_env do
        names = { **environment, "BUNDLE_GEMFILE" => gemfile, "RUBYLIB" => nil }
        output, status = Open3.capture2e(names, "bundle", "add", "rondo", chdir: folder)
        assert status.success?, output
        output, status = Open3.capture2e(names, "bundle", "exec", "rondo", "--version", chdir: folder)
        assert status.success?, output
        assert_includes output, "rondo #{Rondo::VERSION} ("
      end
      assert_match(/^gem "rondo"/, File.read(gemfile))
    end
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
