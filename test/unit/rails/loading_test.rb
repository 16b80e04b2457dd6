# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rbconfig"
require "support/server_process"

# Rails and this gem, whichever is loaded first.
class RailsLoadingTest < Minitest::Test
  APP = <<~RUBY
    require "rails"
    class Blog < Rails::Application
      config.rondo.live_streams = 1
      config.eager_load = false
      config.logger = Logger.new(nil)
    end
    Blog.initialize!
    run ->(_) { [200, {}, []] }
  RUBY
  OLD = <<~RUBY
    module Rails
      class Application; end
      module VERSION
        MAJOR = 6
        STRING = "6.1.7"
      end
      def self.application = nil
    end
    run ->(_) { [200, {}, []] }
  RUBY

  def ruby(script, rackup)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), rackup)
      output, status = Open3.capture2e({ "RUBYLIB" => nil }, RbConfig.ruby, "-I#{File.join(ServerProcess::ROOT, "lib")}", "-e", script, chdir: folder)
      assert_predicate status, :success?, output
      output
    end
  end

  SHOW = "puts Rondo::Rails.const_defined?(:Railtie, false), (Blog.config.rondo.live_streams if defined?(Blog)).inspect"
  BY_THE_COMMAND = <<~RUBY
    require "rondo"
    require "rondo/boot/application"
    require "rondo/config/settings"
    Rondo::WhileLoading.seek([Rondo::Rails.seeker]) { Rondo::Application.send(:parse, "config.ru") }
  RUBY

  def test_rails_comes_later
    assert_equal "true\n1\n", ruby(BY_THE_COMMAND + SHOW, APP)
  end

  def test_rails_is_there
    assert_equal "true\n1\n", ruby("require 'rails'; require 'rondo'; require 'rack'; Rack::Builder.parse_file('config.ru');" + SHOW, APP)
  end

  def test_no_rails
    assert_equal "false\nnil\n", ruby(BY_THE_COMMAND + SHOW, "run ->(_) { [200, {}, []] }")
  end

  def test_settings_that_are_not_as_they_should_be
    { "life = false" => "config.rondo has no life; it has action_cable, turbo, live, max_cable_subscriptions, ",
      "live_streams = '9'" => "config.rondo.live_streams must be an Integer, 0 or more, not \"9\"",
      "live_streams = -1" => "config.rondo.live_streams must be an Integer, 0 or more, not -1" }.each do |line, words|
      app = APP.sub("live_streams = 1", line).sub("Blog.init", "require 'action_controller/railtie'\n  ActionController::Base\nBlog.init")
      says = "begin; #{BY_THE_COMMAND} rescue Rondo::ConfigurationError => e; puts e.message; end"
      assert_match(/\A#{Regexp.escape(words)}[^\n]*\n\z/, ruby(says, app))
    end
  end

  def test_rails_that_is_too_old
    said = "! Rails 6.1.7 is older than 7.0: Action Cable, Turbo and Live stay its own\nfalse\nnil\n"
    assert_equal said, ruby(BY_THE_COMMAND + SHOW, OLD)
    before = OLD.sub(/^run.*/, "")
    assert_equal said, ruby(before + BY_THE_COMMAND + SHOW, "run ->(_) { [200, {}, []] }"), "it was loaded before"
  end
end
