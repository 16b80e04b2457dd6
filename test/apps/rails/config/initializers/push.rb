# frozen_string_literal: true

# Whoever wants to live on with new code is told that the old one goes; in development only.
# SPDX-License-Identifier: MIT

Rails.application.reloader.before_class_unload { Rondo.publish("reload", "", false) }
