# frozen_string_literal: true

{ p256: "P-256", rsa2048: "RSA-2048" }.each do |kind, key|
  Bench.scenario "tls_new_#{kind}" do
    describe "tls_new_#{kind}: a new connection with a full handshake for each request, 64 at a time, key #{key}"
    tls kind
    send_requests :close
    client "--close"
    show :cpu_us, :rps, :busy, :p50_us, :p99_us, :resumed, :unclosed
    at_most 1.05, 0.95, :cpu_us, "new TLS connection and a request over nginx, #{key}", over: "nginx"
  end
end
