# frozen_string_literal: true

# Streams: few enough for a test to have more, and with a history.
# SPDX-License-Identifier: MIT

Rails.application.config.rondo.live_streams = 15
Rondo::PubSub.history("news:*", match: :redis, size: 10)
