# frozen_string_literal: true

Bench.scenario "sleep1in100" do
  describe "sleep1in100: one request of a hundred waits 5 ms, 16 application threads"
  app "sleep1in100"
  beside "hello"
  threads 16
  show :kept, :rps, :cpu_us, :p99_us
  at_least 0.6, 0.75, :kept, "1 % of requests sleep 5 ms, 16 threads: of plain hello"
end
