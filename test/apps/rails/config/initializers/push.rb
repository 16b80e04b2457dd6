# frozen_string_literal: true

# Whoever wants to live on with new code is told that the old one goes; in development only.
# SPDX-License-Identifier: MIT

Rails.application.reloader.before_class_unload { Rondo.publish("reload", "", false) }

# What clients of Action Cable that come back are given.
Rails.application.config.rondo.cable_history = { "*kept *" => { size: 1000, ttl: 60 } } if ENV["CABLE"] == "rondo"
