# frozen_string_literal: true

# Makes the tables of solid_queue: ruby schema.rb
# SPDX-License-Identifier: MIT

require_relative "config/application"

ActiveRecord::Migration.verbose = false
load File.join(Gem.loaded_specs.fetch("solid_queue").gem_dir,
               "lib/generators/solid_queue/install/templates/db/queue_schema.rb")
