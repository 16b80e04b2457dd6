# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# A Rails application as `rails new` makes it, with what test/apps/rails/ holds laid over it. Made
# once per run of the tests in a folder that is gone afterwards; its gems are those of our Gemfile.

require "fileutils"
require "open3"
require "support/server_process"
require "tmpdir"

class RailsApp
  OVERLAY = File.join(__dir__, "rails")
  # @hotwired/turbo, and the element that connects it to Action Cable.
  TURBO = File.join(Gem::Specification.find_by_name("turbo-rails").gem_dir, "app/assets/javascripts/turbo.min.js")
  LARGE_BYTES = 3_000_017
  OPTIONS = %w[--minimal --no-skip-active-storage --no-skip-active-job --no-skip-action-cable --skip-bundle --skip-git
               --skip-asset-pipeline --quiet].freeze
  # Its own Bundler chooses the gems; Bundler.require in config/application.rb shall not load the tools of this project.
  ENVIRONMENT = {
    "BUNDLE_GEMFILE" => File.join(ServerProcess::ROOT, "Gemfile"),
    "BUNDLE_WITHOUT" => "development:apps",
    "RUBYLIB" => nil,
    "RUBYOPT" => nil
  }.freeze

  class << self
    # @return [RailsApp] the same one for all tests
    def instance
      @instance ||= new.tap { |app| Minitest.after_run { app.remove } }
    end
  end

  attr_reader :path

  def initialize
    @folder = Dir.mktmpdir("rondo-rails")
    @path = File.join(@folder, "notes")
    run("bundle", "exec", "rails", "new", @path, *OPTIONS, @folder)
    FileUtils.cp_r(File.join(OVERLAY, "."), @path)
    load_turbo
    puma = File.join(@path, "config/puma.rb")
    File.write(puma, File.read(puma).sub!('ENV.fetch("PORT", 3000)', 'ENV.fetch("PORT_OF_THE_FILE", 3000)'))
    File.binwrite(large_file, Random.bytes(LARGE_BYTES))
    run(rails, "active_storage:install", "db:migrate", @path)
  end

  def rails
    File.join(@path, "bin/rails")
  end

  def large_file
    File.join(@path, "storage/large.bin")
  end

  def remove
    FileUtils.rm_rf(@folder)
  end

  private

  # As Bundler would, if it were in the application's own Gemfile.
  def load_turbo
    file = File.join(@path, "config/application.rb")
    FileUtils.cp(TURBO, File.join(@path, "public"))
    File.write(file, File.read(file).sub("Bundler.require(*Rails.groups)", "\\0\nrequire \"turbo-rails\""))
  end

  def run(*command, folder)
    output, status = Open3.capture2e(ENVIRONMENT, *command, chdir: folder)
    raise "#{command.join(" ")} failed:\n#{output}" unless status.success?
  end
end

# The application run by `rails server` instead of by our own command.
class RailsServerProcess < ServerProcess
  # The list of those to end with the tests is one for all kinds of servers.
  def self.running
    ServerProcess.running
  end

  private

  def command_line(app, _settings, _config, _binds, args)
    [app, "server", "-b", "127.0.0.1", "-p", "0", *args]
  end
end

# Without an option that says where to listen.
class PlainRailsServerProcess < RailsServerProcess
  private

  def command_line(app, _settings, _config, _binds, args)
    [app, "server", *args]
  end
end
