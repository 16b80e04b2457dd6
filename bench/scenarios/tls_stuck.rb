# frozen_string_literal: true

Bench.scenario "tls_stuck" do
  describe "tls_stuck: 4 connections over TLS that are opened, and ask for a file of 1 KiB, while Ruby is stuck"
  tls :p256
  app "files"
  kind :beside_stuck
  send_requests :file1k
  over_connections 4
  rounds 2
  show :longest_ms, :p50_us, :answers, :errors
  at_most 50, 10, :longest_ms, "static files over TLS while Ruby is stuck: slowest answer, ms"
end
