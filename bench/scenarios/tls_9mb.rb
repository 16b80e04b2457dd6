# frozen_string_literal: true

Bench.scenario "tls_9mb" do
  describe "tls_9mb: 4 TLS connections, a file of 9 MB again and again"
  tls :p256
  app "files"
  send_requests :file9mb
  over_connections 4
  show :mb_per_cpu_s, :cpu_us_per_mb, :mb_per_s, :busy
  at_least 1.0, 1.25, :mb_per_cpu_s, "file of 9 MB over TLS, MB per CPU second over nginx", over: "nginx"
end
