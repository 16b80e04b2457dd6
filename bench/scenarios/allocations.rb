# frozen_string_literal: true

Bench.scenario "allocations" do
  describe "allocations: objects made by the server for each plain request"
  app "allocations"
  kind :allocations
  over_connections 1
  show :objects
  at_most 3, 2, :objects, "objects allocated by the server per plain request"
end
