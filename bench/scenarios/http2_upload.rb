# frozen_string_literal: true

Bench.scenario "http2_upload" do
  describe "http2_upload: 100 MB in one request over TLS, over HTTP/2 and over HTTP/1.1"
  tls :p256
  app "upload"
  kind :upload
  alone true
  http2 1
  over_connections 1
  show :mb_per_s, :http1_mb_per_s, :over_http1
  at_least 0.8, 0.95, :over_http1, "100 MB upload over h2, rate over own TLS HTTP/1.1"
end
