# frozen_string_literal: true

# The configuration of the recipes. PORT, WEB_CONCURRENCY, RAILS_MAX_THREADS and REDIS_URL count without a line here.

require "fileutils"

# `rondo ctl ready`, in the folder of the application, asks it. The mode of the socket's file (0600) says who may. An
# address that other machines reach needs a token, and then it only shows numbers.
folder = File.expand_path("../tmp", __dir__)
FileUtils.mkdir_p(folder)
token = ENV.fetch("CONTROL_TOKEN", nil)
activate_control_app ENV.fetch("CONTROL_URL", "unix://#{folder}/control.sock"),
                     **(token ? { auth_token: token, data_only: true } : { no_token: true })

# Shorter than the time after which the platform kills the process: Heroku, Fly and Render give 30 s.
drain_timeout 25
worker_shutdown_timeout 27

# How long a server that is told to stop still takes clients: longer than a load balancer needs to notice. Then
# WebSockets and event streams end over this time, not all at once. Both are seconds.
drain_delay ENV.fetch("DRAIN_DELAY", "0")
drain_spread ENV.fetch("DRAIN_SPREAD", "5")

# Proxies that may name the client, as 10.0.0.0/8,fd00::/8. Without any, no forwarded field is believed.
trusted_proxies ENV.fetch("TRUSTED_PROXIES", "").split(",")

# The field in which they name it, where X-Forwarded-For does not end with the client.
set_remote_address header: ENV["CLIENT_FIELD"] if ENV["CLIENT_FIELD"]
