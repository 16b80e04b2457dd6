# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require_relative "config/application"

# Of an asset pipeline, which adds its own work to these.
%w[assets:precompile assets:clobber test:prepare spec:prepare db:test:prepare].each { |name| task(name) }

Rails.application.load_tasks
