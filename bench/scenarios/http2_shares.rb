# frozen_string_literal: true

Bench.scenario "http2_shares" do
  describe "http2_shares: ten HTTP/1.1 clients beside one connection with 100 streams, TLS, a page of 1 ms"
  tls :p256
  app "cpu1ms"
  kind :shared
  http2 100
  over_connections 1
  client "--beside", "10"
  lasting 4
  rounds 3
  show :part, :max_over_min, :beside_p99_us, :p99_us, :longest_us, :errors
  at_least 0.58, 0.62, :part, "1 ms page: ten HTTP/1.1 clients beside one h2 client with 100 streams, their part"
  at_most 1.10, 1.03, :max_over_min, "the same: max/min among the ten"
end

Bench.scenario "http2_shares_hello" do
  describe "http2_shares_hello: the same with a plain page, without TLS"
  kind :shared
  alone true
  http2 100
  over_connections 1
  client "--beside", "10"
  lasting 2
  show :part, :max_over_min, :beside_p99_us, :p99_us, :longest_us, :busy, :errors
  at_least 0.40, 0.48, :part, "hello: the same ten, their part"
end

Bench.scenario "http2_shares_ten" do
  describe "http2_shares_ten: ten connections with 10 streams each, TLS, a page of 1 ms"
  tls :p256
  app "cpu1ms"
  http2 10
  over_connections 10
  lasting 5
  rounds 3
  show :max_over_min, :longest_over_median, :p50_us, :longest_us, :rps
  at_most 1.05, 1.02, :max_over_min, "ten h2 clients × 10 streams, 1 ms page: max/min"
  at_most 1.25, 1.10, :longest_over_median, "the same: longest wait over median"
end
