# frozen_string_literal: true

Bench.scenario "push_idle_object" do
  describe "push_idle_object: the same with a handler object for each, whose on_open was called"
  app "push"
  kind :idle_sockets
  rounds 2
  within 30
  fresh true
  path "/idle_object"
  over_connections 10_000
  show :bytes_per_connection, :bytes_per_further
  at_most 1024, 800, :bytes_per_connection, "user memory per idle WebSocket with its objects, bytes"
end
