# frozen_string_literal: true

# A Rails application with solid_queue, small enough for tests: a job writes a line.
# SPDX-License-Identifier: MIT

require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "action_controller/railtie"
require "solid_queue"

class Jobs < Rails::Application
  config.load_defaults 7.2
  config.root = File.expand_path("..", __dir__)
  config.eager_load = true
  config.secret_key_base = "0123456789abcdef" * 4
  config.logger = ActiveSupport::Logger.new(File.join(config.root, "rails.log"))
  config.active_job.queue_adapter = :solid_queue
  config.solid_queue.shutdown_timeout = 2
  config.paths["config/routes.rb"] = []
end

def note(line)
  File.open(Rails.root.join("lines"), "a") { |file| file.write("#{line}\n") }
end

SolidQueue.on_start { note "start #{Process.pid}" }
SolidQueue.on_exit { note "exit #{Process.pid}" }

Rails.application.initialize!

class NoteJob < ActiveJob::Base
  def perform(word)
    note "job #{word}"
  end
end

raise "this generation is broken" if Rails.root.join("broken").exist?
