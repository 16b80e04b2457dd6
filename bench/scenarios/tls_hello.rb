# frozen_string_literal: true

Bench.scenario "tls_hello" do
  describe "tls_hello: 64 keep-alive connections over TLS, one plain request after the other"
  tls :p256
  at_most 1.6, 1.4, :cpu_us, "hello over TLS over the same without TLS", over: "plain"
  at_most 1.15, 1.0, :cpu_us, "hello over TLS over nginx", over: "nginx"
  at_most 0.22, 0.16, :cpu_us, "hello over TLS over Puma 8 -t 5:5", over: "puma"
end
