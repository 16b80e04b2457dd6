# frozen_string_literal: true

Bench.scenario "spin" do
  describe "spin: hello beside a Ruby thread that computes without end"
  app "spin"
  beside "hello"
  restless true
  show :kept, :rps, :spins_per_s, :p50_us, :longest_us
  at_least 0.40, 0.48, :kept, "throughput kept beside a spinning Ruby thread"
end
