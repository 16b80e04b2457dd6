# frozen_string_literal: true

# The bytes that Redis sends, on Node: every cut of them, limits, and bytes that are no reply. No server is needed.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"

class NodeRedisRepliesTest < Minitest::Test
  SOURCE = File.expand_path("../../node/lib/rondo/node/engine/redis/replies.js", __dir__)

  def test_replies
    output, = Open3.capture2e("node", File.expand_path("redis_replies.js", __dir__), SOURCE)
    assert_equal "all as on MRI\n", output
  end
end
