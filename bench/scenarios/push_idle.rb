# frozen_string_literal: true

Bench.scenario "push_idle" do
  describe "push_idle: user memory for each of 10,000 idle WebSockets, a handler without callbacks"
  app "push"
  kind :idle_sockets
  rounds 2
  within 30
  fresh true
  path "/idle"
  over_connections 10_000
  show :bytes_per_connection, :bytes_per_further
  at_most 600, 400, :bytes_per_connection, "user memory per idle WebSocket, bytes"
end
