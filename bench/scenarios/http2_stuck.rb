# frozen_string_literal: true

Bench.scenario "http2_stuck" do
  describe "http2_stuck: 4 connections over TLS that are opened, and ask for a file of 1 KiB, while Ruby is stuck " \
           "for 5 s; a PING each 10 ms"
  tls :p256
  app "files"
  kind :stuck_streams
  alone true
  http2 1
  page "/1k.bin"
  client "--ping", "10"
  over_connections 4
  rounds 3
  show :longest_ms, :ping_longest_ms, :worst_ms, :p50_us, :answers, :pings, :errors
  at_most 50, 10, :worst_ms, "files and PINGs over h2 while Ruby is stuck for 5 s: slowest, ms"
  at_most 0, 0, :errors, "the same: not answered"
end
