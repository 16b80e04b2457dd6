# frozen_string_literal: true

# The name of a Redis or a NATS has no answer, for ever: the server ends all the same when it is told to.
# SPDX-License-Identifier: MIT

require_relative "../shell_case"
require "support/slow_names"

class SlowNamesTest < ShellCase
  VERBS = ['redis_url "redis://redis.slow.test:6379"', 'nats "nats://nats.slow.test"'].freeze

  # Status, or the signal that is passed on.
  ENDS = { "INT" => [0, nil], "TERM" => [nil, Signal.list["TERM"]] }.freeze

  def test_a_server_ends_while_a_name_is_looked_up
    VERBS.each do |verb|
      %w[0 2].product(ENDS.keys).each do |workers, signal|
        SlowNames.open do |names|
          server = begin_server(names, verb, workers)
          eventually("the address is asked for") { names.asked == 1 }
          assert_equal "hello", get(server, "/").body
          status = server.stop(signal: signal)
          assert_equal ENDS[signal], [status.exitstatus, status.termsig], "#{verb} #{workers} #{signal}"
          assert_match(/Goodbye!.*the end of the application/m, server.log)
        end
      end
    end
  end

  private

  def begin_server(names, verb, workers)
    write "config.ru", HELLO
    write "slow.rb", "#{verb}\nat_exit { puts 'the end of the application' }\n"
    start("-w", workers, "-C", "slow.rb", env: names.env)
  end
end
