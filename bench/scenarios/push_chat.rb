# frozen_string_literal: true

Bench.scenario "push_chat" do
  describe "push_chat: 32 clients, each sends 50 messages, all get all, then again"
  app "push"
  kind :chat
  rounds 3
  within 25
  over_connections 32
  show :deliveries, :delivery_us, :busy, :wrong
  at_least 6, 8, :deliveries, "chat of 32, deliveries/s over npm ws", over: "ws"
  at_most 0, 0, :wrong, "deliveries missing or doubled in the chat"
end
