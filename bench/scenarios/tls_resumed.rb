# frozen_string_literal: true

Bench.scenario "tls_resumed" do
  describe "tls_resumed: a new connection with a resumed handshake for each request, 64 at a time"
  tls :p256
  handshakes :resumed
  send_requests :close
  client "--close"
  show :cpu_us, :rps, :busy, :p50_us, :p99_us, :resumed, :unclosed
  at_most 1.05, 0.95, :cpu_us, "new TLS connection, resumed, and a request over nginx", over: "nginx"
end
