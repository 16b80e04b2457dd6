# frozen_string_literal: true
# SPDX-License-Identifier: MIT

module Recommended
  def self.apply(config)
    config.workers 2
    config.threads 1, 4
    config.before_worker_boot { }
    config.port 3000
    config.tag config.get(:environment, "app").to_s
  end
end
Recommended.apply(self)
environment "qa"
