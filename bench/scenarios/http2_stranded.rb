# frozen_string_literal: true

Bench.scenario "http2_stranded" do
  describe "http2_stranded: 16 connections over TLS, 2 workers of one thread, one of them stuck for 2 s"
  tls :p256
  app "stranded"
  kind :stranded_streams
  alone true
  http2 1
  over_connections 16
  workers 2
  show :longest_ms, :added_us, :cpu_us, :answers, :stranded, :stranded_conns, :errors
  at_most 50, 15, :longest_ms, "stranded h2 requests beside a 2 s pin: longest wait, ms"
  at_most 150, 60, :added_us, "the same: added CPU each, µs"
end
