# frozen_string_literal: true

Bench.scenario "up_hello4" do
  describe "hello over 125 connections, as Up! measures it; four workers"
  processes 4
  over_connections 125
end
