# frozen_string_literal: true

Bench.scenario "http2_streams" do
  describe "http2_streams: one connection over TLS with 100 requests on their way"
  tls :p256
  http2 100
  over_connections 1
  at_most 0.9, 0.65, :cpu_us, "h2 over TLS: 1 × 100 streams over nginx", over: "nginx"
  at_most 1.9, 1.4, :cpu_us, "h2 over TLS: 1 × 100 streams over nghttpd", over: "nghttpd"
end
