# frozen_string_literal: true

Bench.scenario "up_broadcast" do
  describe "bursts of 10 messages of 100 bytes to 1,000 subscribers"
  app "push"
  kind :broadcast
  within 60
  over_connections 1_000
  show :single_us, :burst_us, :first_us, :last_us, :burst_last_us, :wrong
  at_most 1.15, 1.0, :burst_us, "bursts of 10 to 1,000 on Node, CPU over plain ws", of: "node", over: "ws"
end
