# frozen_string_literal: true

Bench.scenario "tls_stranded" do
  describe "tls_stranded: 16 connections over TLS, 2 workers of one thread, one of them stuck for 3 of 5 s"
  tls :p256
  app "files"
  kind :beside_stuck
  over_connections 16
  rounds 2
  workers 2
  show :longest_ms, :p50_us, :p99_us, :answers, :errors
  at_most 50, 15, :longest_ms, "requests of TLS connections of a stuck worker: longest wait, ms"
end
