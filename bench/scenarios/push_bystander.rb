# frozen_string_literal: true

Bench.scenario "push_bystander" do
  describe "push_bystander: 500 plain requests a second, one message to 10,000 subscribers each second"
  app "push"
  kind :bystander
  rounds 2
  within 40
  lasting 3
  over_connections 10_000
  show :p99_us, :p50_us, :longest_us, :last_us, :wrong
  at_most 5000, 2000, :p99_us, "HTTP p99 beside a broadcast to 10,000 each second, µs"
end
