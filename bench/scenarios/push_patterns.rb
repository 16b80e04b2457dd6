# frozen_string_literal: true

Bench.scenario "push_patterns" do
  describe "push_patterns: 100 bytes to one subscriber, without and with a client that has 1,000 hostile patterns"
  app "push"
  kind :patterns
  rounds 3
  within 30
  fresh true
  over_connections 1
  show :publish_us, :over_none, :wrong
  at_most 3, 1.5, :over_none, "publish with 1,000 patterns of one client over none"
end
