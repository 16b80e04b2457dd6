# frozen_string_literal: true

Bench.scenario "push_echo" do
  describe "push_echo: 64 WebSockets, one message of 100 bytes after the other on each"
  app "push"
  kind :echo
  rounds 3
  within 25
  show :message_us, :messages, :busy, :p50_us, :p99_us, :wrong
  at_most 0.95, 0.85, :message_us, "WebSocket echo over up_ruby", over: "up"
end
