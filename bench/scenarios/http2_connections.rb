# frozen_string_literal: true

Bench.scenario "http2_connections" do
  describe "http2_connections: 32 connections over TLS, one request after the other on each"
  tls :p256
  http2 1
  over_connections 32
  at_most 1.10, 0.95, :cpu_us, "h2 over TLS: 32 connections × 1 stream over nginx", over: "nginx"
end
