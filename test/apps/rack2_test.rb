# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# A Rack 2 application behind Rondo, checked by Rack 2's own Lint: by our command and by Rack 2's
# rackup. Its gems come from its own Gemfile.

require "open3"
require_relative "app_case"

# What holds for both.
module Rack2Behaviour
  FOLDER = File.join(__dir__, "rack2")
  ENVIRONMENT = { "BUNDLE_GEMFILE" => File.join(FOLDER, "Gemfile"), "RUBYOPT" => nil, "RUBYLIB" => nil }.freeze

  def self.install
    return if @installed
    output, status = Open3.capture2e(ENVIRONMENT, "bundle", "install", "--quiet")
    raise "bundle install failed:\n#{output}" unless status.success?
    @installed = true
  end

  def test_it_is_rack_2
    assert_match(/\A2\./, browser.get("/release").body)
  end

  def test_joined_values_are_several_fields
    response = browser.get("/cookies")
    assert_equal %w[a=1 b=2], response.get_fields("set-cookie")
    assert_equal "two", response.body
  end

  def test_the_keys_of_rack_2
    assert_equal '[[1, 3], true, false, false, "http"]', browser.get("/env").body
  end

  def test_the_input_rewinds
    request = Net::HTTP::Post.new("/twice", "content-type" => "text/plain")
    request.body = "once;"
    assert_equal "once;once;", browser.http.request(request).body
    assert_equal "", browser.get("/twice").body
  end

  def test_forms_and_empty_answers
    assert_equal({ "a" => "1", "b" => "2" }.inspect, browser.post("/parameters?a=1", "b" => "2").body)
    assert_equal "204", browser.get("/empty").code
    assert_equal "200", browser.head("/env").code
    assert_equal "404", browser.get("/none").code
  end
end

class Rack2Test < AppCase
  include Rack2Behaviour

  # Our command with the gems of that Gemfile.
  class Process < ServerProcess
    def self.running
      ServerProcess.running
    end

    private

    def command_line(app, _settings, _config, binds, args)
      ["bundle", "exec", "ruby", "-I#{ROOT}/lib", "#{ROOT}/exe/rondo", "-b", binds.first, *args, app]
    end
  end

  def self.start_server
    Rack2Behaviour.install
    Process.new(File.join(Rack2Behaviour::FOLDER, "config.ru"), env: Rack2Behaviour::ENVIRONMENT)
  end
end

# Workers with one thread each, which is the other way around.
class Rack2WorkersTest < AppCase
  def self.start_server
    Rack2Behaviour.install
    Rack2Test::Process.new(File.join(Rack2Behaviour::FOLDER, "config.ru"), args: %w[-w 2 -t 1],
                                                                           env: Rack2Behaviour::ENVIRONMENT)
  end

  def test_the_keys_of_rack_2
    assert_equal '[[1, 3], false, true, false, "http"]', browser.get("/env").body
  end
end

class Rack2RackupTest < AppCase
  include Rack2Behaviour

  # Rack 2's own rackup.
  class Process < Rack2Test::Process
    private

    def command_line(app, _settings, _config, _binds, args)
      ["bundle", "exec", "rackup", "-I", "#{ROOT}/lib", "-s", "rondo", "-E", "production", "-o", "127.0.0.1",
       "-p", "0", *args, app]
    end
  end

  def self.start_server
    Rack2Behaviour.install
    Process.new(File.join(Rack2Behaviour::FOLDER, "config.ru"), env: Rack2Behaviour::ENVIRONMENT)
  end
end
