# frozen_string_literal: true

Bench.scenario "close" do
  describe "close: a new connection for each request, 64 at a time"
  send_requests :close
  client "--close"
  show :cpu_us, :rps, :busy, :p50_us, :p99_us, :unclosed
  at_most 1.08, 1.00, :cpu_us, "new connection per request over nginx", over: "nginx"
end
