# frozen_string_literal: true

# Addresses of several servers at boot, and nobody there. Addresses that are none: bad_values_test.rb.
# SPDX-License-Identifier: MIT

require_relative "../../shell_case"

class RedisHaBootTest < ShellCase
  AWAY = "redis+sentinel://127.0.0.1:1,127.0.0.1:2/main"

  def setup
    super
    write "config.ru", HELLO
  end

  # As a Redis that is away: one line, and it goes on; or it must be there.
  def test_sentinels_that_are_away
    reasons = "127.0.0.1:1: Connection refused; 127.0.0.1:2: Connection refused"
    server = start("-w", "1", "--redis-streams", AWAY)
    server.wait_for_log(/^! Redis at #{Regexp.escape(AWAY)} is not available: no Sentinel names the master: #{reasons}; trying again$/)
    assert_equal "hello", get(server).body
    write "rondo.rb", "redis_required\n"
    assert_complaint 1, /Redis at \S+ is not available: no Sentinel names the master: #{reasons}$/,
                     rondo("-C", "rondo.rb", "-q", "-r", AWAY)
  end
end
