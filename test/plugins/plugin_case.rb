# frozen_string_literal: true

# Servers with the gems of this folder: each has a copy of an application in its folder, and one of the two Gemfiles.
# tools/run_plugins installs the gems.
# SPDX-License-Identifier: MIT

require "integration/cluster/cluster_case"

class PluginCase < ClusterCase
  FOLDER = ENV.fetch("RONDO_PLUGIN_GEMS", File.join(ROOT, "build/plugins/gems"))
  LONG = 240
  WITHOUT_PUMA = "Gemfile"
  WITH_PUMA = "Gemfile.puma"

  # A server in a bundle.
  class Server < ShellCase::Server
    def self.running
      superclass.running
    end

    private

    def command_line(app, _settings, _config, binds, args)
      [RbConfig.ruby, "-rbundler/setup", "-I#{File.join(ROOT, "lib")}", File.join(ROOT, "exe/rondo"),
       *binds.flat_map { |bind| ["-b", bind] }, *args, *app]
    end
  end

  def setup
    super
    skip "the gems of test/plugins are not installed (tools/run_plugins)" unless File.directory?(FOLDER)
  end

  def surroundings(gemfile)
    { "BUNDLE_GEMFILE" => File.join(__dir__, gemfile), "GEM_HOME" => FOLDER, "RUBYOPT" => nil, "RUBYLIB" => nil,
      "GEM_PATH" => [FOLDER, *Gem.default_path].join(":"), "BUNDLE_WITHOUT" => nil, "BUNDLE_APP_CONFIG" => File.join(@folder, ".bundle"), "BUNDLE_PATH" => nil,
      "RACK_ENV" => "production", "RAILS_ENV" => "production" }
  end

  def start(*words, gemfile: WITHOUT_PUMA, env: {}, spawn: {}, **options)
    server = Server.new(nil, binds: ["tcp://127.0.0.1:0"], args: words, env: BLANK.merge(surroundings(gemfile), env),
                             spawn: { chdir: @folder }.merge(spawn), **options)
    @servers << server
    server
  end

  # A restart loads Bundler and Rails twice, so on a busy machine it takes longer than what other tests wait for.
  def eventually(what)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + LONG
    until (found = yield)
      flunk "this never came: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, 0.02)
    end
    found
  end

  def lay_out(application)
    FileUtils.cp_r(File.join(__dir__, application, "."), @folder)
  end

  # @return [String] what a program of the bundle writes
  def bundled(*words, gemfile: WITHOUT_PUMA)
    output, status = Open3.capture2e(BLANK.merge(surroundings(gemfile)), RbConfig.ruby, "-rbundler/setup", *words,
                                     chdir: @folder)
    assert_predicate status, :success?, output
    output
  end
end
