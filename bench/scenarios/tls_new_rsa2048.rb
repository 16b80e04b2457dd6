# frozen_string_literal: true

Bench.scenario "tls_new_rsa2048" do
  describe "tls_new_rsa2048: a new connection with a full handshake for each request, 64 at a time, key RSA-2048"
  tls :rsa2048
  send_requests :close
  client "--close"
  show :cpu_us, :rps, :busy, :p50_us, :p99_us, :resumed, :unclosed
  at_most 1.05, 0.95, :cpu_us, "new TLS connection and a request over nginx, RSA-2048", over: "nginx"
end
