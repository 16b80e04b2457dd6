# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: SOLID_QUEUE_IN_PUMA=1 METRICS=1

workers 2
threads 1, 1
port 3000
plugin :tmp_restart
plugin :solid_queue if ENV["SOLID_QUEUE_IN_PUMA"]
if ENV["METRICS"]
  activate_control_app "auto", no_token: true
  plugin :yabeda
  plugin :yabeda_prometheus
end
preload_app!
before_fork { }
out_of_band { GC.start }
