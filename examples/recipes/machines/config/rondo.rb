# frozen_string_literal: true

# The same on each machine. Secrets are in variables: they are the same on all machines, and another application on the
# same Redis has others.

workers ENV.fetch("WEB_CONCURRENCY", "2")
bind "tcp://0.0.0.0:#{ENV.fetch("PORT", "9292")}"

# Redis keeps the messages of channels with a history, so clients resume at any machine. An application has a prefix of
# its own: two without one would share channels and messages.
redis_streams ENV.fetch("REDIS_URL")
redis_prefix "shop"

signing_secret ENV.fetch("SIGNING_SECRET")
# Presence takes its secret from RONDO_PRESENCE_SECRET.

# HAProxy asks here whether the machine is ready, and jobs publish here. Whoever has the token can also stop the server:
# let only HAProxy and your jobs reach this port. Without jobs, add `data_only: true`.
activate_control_app "tcp://0.0.0.0:#{ENV.fetch("CONTROL_PORT", "9293")}", auth_token: ENV.fetch("CONTROL_TOKEN")

# Longer than HAProxy needs to notice; then clients come back one by one.
drain_delay 3
drain_spread 5

trusted_proxies ENV.fetch("TRUSTED_PROXIES", "").split(",")
