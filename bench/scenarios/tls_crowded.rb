# frozen_string_literal: true

Bench.scenario "tls_crowded" do
  describe "tls_crowded: 8 keep-alive connections over TLS while 200 full handshakes a second arrive, key RSA-2048"
  tls :rsa2048
  kind :crowded
  over_connections 8
  show :quiet_p99_us, :p99_us, :added_ms, :rps
  at_most 2.0, 1.0, :added_ms, "p99 of hello while handshakes arrive, ms above quiet"
end
