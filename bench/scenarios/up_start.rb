# frozen_string_literal: true

Bench.scenario "up_start" do
  describe "a start with nothing new, up to the first answer"
  kind :starting
  show :start_s
  at_most 1.0, 0.5, :start_s, "second start on Node, seconds", of: "node"
end
