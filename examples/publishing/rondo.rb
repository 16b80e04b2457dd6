# frozen_string_literal: true

# The secret of an application comes from its environment, so that it stays the same: names that were signed with
# another one are worth nothing.

require "securerandom"

signing_secret ENV.fetch("SIGNING_SECRET") { SecureRandom.hex(32) }
activate_control_app ENV.fetch("CONTROL", "tcp://127.0.0.1:9293"), auth_token: ENV.fetch("TOKEN", "publishing")
