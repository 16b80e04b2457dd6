# frozen_string_literal: true

Bench.scenario "push_broadcast5k" do
  describe "push_broadcast5k: 100 bytes to 5,000 subscribers"
  app "push"
  kind :broadcast
  rounds 5
  within 75
  over_connections 5_000
  show :single_us, :burst_us, :first_us, :last_us, :burst_last_us, :wrong
  at_most 1.20, 1.10, :single_us, "broadcast to 5,000 over raw send()", over: "floor"
  at_most 0.90, 0.80, :single_us, "broadcast to 5,000 over up_ruby", over: "up"
  at_most 0.90, 0.80, :single_us, "broadcast to 5,000 over iodine 0.7", over: "iodine"
  at_most 1.00, 0.90, :burst_us, "bursts of 10 to 5,000 over up_ruby", over: "up"
  at_most 0, 0, :wrong, "deliveries missing or doubled, 5,000 subscribers"
end
