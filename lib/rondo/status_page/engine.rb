# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require "rails/engine"

module Rondo
  class StatusPage
    # The status page for Rails: `mount Rondo::StatusPage::Engine => "/server"`. What stands in front of it in the
    # routes (a constraint, a login) decides who sees it.
    class Engine < ::Rails::Engine
      endpoint StatusPage.new
    end
  end
end
