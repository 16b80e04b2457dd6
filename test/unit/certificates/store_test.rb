# frozen_string_literal: true

# When the next try is due. The files, and what is done when it is: test/integration/tls/acme_test.rb, test/acme.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/certificates/store"
require "tmpdir"

class CertificatesStoreTest < Minitest::Test
  NAME = "a.example.com"
  WEEK = 7 * 86_400

  def setup
    @root = Dir.mktmpdir
    @store = Rondo::Certificates::Store.new(@root)
  end

  def teardown
    FileUtils.rm_rf(@root)
  end

  def seconds_left
    @store.state(NAME).due_at - Time.now
  end

  def test_failures_make_tries_rare
    delays = Array.new(12) { @store.failed(NAME, "no") }
    assert_includes 48..72, delays.first
    assert_includes 96..144, delays[1]
    assert_includes 17_280..25_920, delays.last
    assert_in_delta delays.last, seconds_left, 60
    assert_equal [12, "no"], @store.state(NAME).to_h.values_at(:failures, :error)
    @store.succeeded(NAME)
    assert_operator seconds_left, :<, 0
  end

  def test_the_server_may_ask_for_a_week
    assert_equal 3600 * 9, @store.failed(NAME, "no", 3600 * 9)
    assert_equal WEEK, @store.failed(NAME, "no", 10 * WEEK)
    assert_in_delta WEEK, seconds_left, 60
  end

  # The clock was ahead when the try failed. Nobody waits until it is that late.
  def test_a_next_try_that_is_too_far_away_is_none
    @store.folder.write("tries/#{NAME}.json", JSON.generate(failures: 1, next: Time.now.to_i + WEEK + 3600, error: "no"))
    assert_operator seconds_left, :<, 0
    assert_equal 1, @store.state(NAME).failures
  end
end
