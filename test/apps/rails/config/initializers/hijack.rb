# frozen_string_literal: true

# Action Cable's own server takes the connections of its clients.
# SPDX-License-Identifier: MIT

Rails.application.config.rondo.action_cable = false if ENV["CABLE_BY"] == "hijack"
