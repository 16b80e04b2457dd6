# frozen_string_literal: true

Bench.scenario "mix" do
  describe "mix: a third GET, a third POST with a length, a third chunked POST, bodies of 2 bytes"
  app "post"
  send_requests :plain, :post, :chunked
  beside "hello"
  show :cpu_us, :rps, :kept, :p50_us, :p99_us
  at_least 0.75, 0.85, :kept, "POST mix over hello, requests/s"
end
