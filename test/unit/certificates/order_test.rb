# frozen_string_literal: true

# How long the ACME server is left alone between two questions. The questions themselves: test/integration/tls/acme_test.rb.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/certificates/order"

class OrderTest < Minitest::Test
  NOW = Time.utc(2026, 11, 23, 12)

  def test_seconds_between_two_questions
    wishes = { "5" => 5.0, "0.5" => 0.5, "Mon, 23 Nov 2026 12:00:07 GMT" => 7.0,
               nil => 2, "" => 2, "soon" => 2, "0" => 2, "-3" => 2, "Mon, 23 Nov 2026 11:59:00 GMT" => 2 }
    wishes.each { |wish, seconds| assert_equal seconds, Rondo::Certificates::Order.pause(wish, 2, NOW), wish.inspect }
  end
end
