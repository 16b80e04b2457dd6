# frozen_string_literal: true

Bench.scenario "fairness10" do
  describe "fairness10: 10 keep-alive connections, the busiest over the least served"
  over_connections 10
  # If the server is nearly as fast as the client, the first connection is chosen by chance. That evens out.
  lasting 3
  show :max_over_min, :rps, :p99_us, :longest_us
  at_most 1.02, 1.005, :max_over_min, "10 keep-alive connections: completed requests max/min"
end
