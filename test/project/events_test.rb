# frozen_string_literal: true

# An event of upgraded and raw connections has a row in endpoint/endpoint_events.def, one place that raises it, and a row in
# docs/PUSH.md. No other place names its callback.
# SPDX-License-Identifier: MIT

require "test_helper"

class EventsTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  CALLBACKS = File.read("#{ROOT}/ext/rondo/endpoint/endpoint_events.def").scan(/^RD_ENDPOINT_EVENT\(\w+, (\w+)\)/).flatten
  # on_close and on_open are also called when the handler changes. The others are looked for before their event comes:
  # on_drained and ping because most handlers have none, on_message because most have it, and to ask is expensive.
  ELSEWHERE = { "on_open" => %w[rb_events.c], "on_close" => %w[rb_events.c],
                "on_message" => %w[rb_client.c], "on_drained" => %w[rb_client.c], "ping" => %w[rb_client.c] }.freeze

  def test_each_callback_has_its_row_in_the_manual
    assert_includes CALLBACKS, "on_message"
    rows = File.read("#{ROOT}/docs/PUSH.md").scan(/^\| `(\w+)\(client/).flatten
    assert_equal CALLBACKS.sort, rows.sort
  end

  def test_no_other_file_names_a_callback
    CALLBACKS.each do |callback|
      files = Dir["#{ROOT}/ext/rondo/{ruby,fibers,binding,rack,app}/*.{c,h,def}"].select do |file|
        File.read(file, encoding: "UTF-8").match?(/rd_id\.#{callback}\b/)
      end
      assert_equal ELSEWHERE.fetch(callback, []), files.map { |file| File.basename(file) }.sort, callback
    end
  end
end
