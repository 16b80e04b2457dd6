# frozen_string_literal: true

# The tests name no origin that Action Cable would know.
# SPDX-License-Identifier: MIT

Rails.application.config.action_cable.disable_request_forgery_protection = true
