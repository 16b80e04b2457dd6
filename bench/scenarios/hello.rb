# frozen_string_literal: true

Bench.scenario "hello" do
  describe "hello: 64 keep-alive connections, one plain request after the other"
  at_most 1.25, 1.12, :cpu_us, "hello over the bare C floor", over: "floor"
  at_most 1.00, 0.92, :cpu_us, "hello over the floor on MRI", over: "mri"
  at_most 0.75, 0.66, :cpu_us, "hello over iodine 0.7", over: "iodine"
  at_most 1.00, 0.92, :cpu_us, "hello over up_ruby", over: "up"
  at_most 0.17, 0.14, :cpu_us, "hello over Puma 8 -t 5:5", over: "puma"
end
