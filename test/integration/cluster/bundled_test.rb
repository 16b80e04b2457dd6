# frozen_string_literal: true

# `bundle exec PATH`: Bundler loads the program into its own process and gives that a title, which overwrites the words
# that started it. Molds and restarts need these.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"

class ClusterBundledTest < ClusterCase
  # A copy of the command in the folder of the test, found by its path.
  class Bundled < ShellCase::Server
    private

    def command_line(_app, _settings, _config, binds, args)
      [RbConfig.ruby, Gem.bin_path("bundler", "bundle"), "exec", "./rondo", *binds.flat_map { |bind| ["-b", bind] }, *args]
    end
  end

  def test_molds_and_restarts_by_a_path
    exe = write("rondo", "#!/usr/bin/env ruby\nrequire \"rondo/command/cli\"\nexit Rondo::CLI.new(ARGV).run\n")
    File.chmod(0o755, exe)
    env = { "BUNDLE_GEMFILE" => File.expand_path("../../../Gemfile", __dir__), "RUBYOPT" => nil, "RUBYLIB" => nil }
    server = Bundled.new(nil, args: ["-w", "1", "--tag", "two words"], env: env, spawn: { chdir: @folder }).tap { |one| @servers << one }
    wait_for_workers(server, 1)
    assert_equal workers(server).fetch(0).to_s, get(server).body
    restart(server, "USR1", phase: 1)
    restart(server, "USR2", phase: 2)
    assert_equal workers(server).fetch(0).to_s, get(server).body
    assert_includes title(mold(server)), "[two words]"
    assert server.stop.success?
  end
end
