# frozen_string_literal: true

# Each hook under each of its names: when, in which process, with which arguments.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"

class ClusterHooksTest < ClusterCase
  # Writes the name of a hook, its process and its arguments.
  def self.say(name, given = "*given")
    "#{name} { |#{given}| warn \"#{name} in \#{Process.pid} with \#{given.inspect}\" }\n"
  end

  IN_WORKERS = %w[before_worker_boot on_worker_boot before_worker_drain before_worker_shutdown on_worker_shutdown].freeze
  IN_THE_MOLD = %w[before_worker_fork on_worker_fork after_worker_fork after_worker_boot].freeze

  IN_WORKERS.each do |name|
    define_method("test_#{name}") do
      write "config/rondo.rb", self.class.say(name)
      server = cluster
      pids = workers(server)
      server.stop
      assert_equal pids.map { |index, pid| "#{name} in #{pid} with [#{index}]" }.sort, server.log.scan(/^#{name} .*$/).sort
    end
  end

  IN_THE_MOLD.each do |name|
    define_method("test_#{name}") do
      write "config/rondo.rb", self.class.say(name)
      server = cluster
      server.wait_for_log(/(#{name} in.*){2}/m)
      assert_equal Array.new(2) { |index| "#{name} in #{mold(server)} with [#{index}]" }, server.log.scan(/^#{name} .*$/)
    end
  end

  def test_before_fork_and_after_booted
    write "config/rondo.rb", %w[before_fork after_booted on_booted].map { |name| self.class.say(name) }.join
    server = cluster
    server.wait_for_log(/^on_booted/)
    %w[before_fork after_booted on_booted].each do |name|
      assert_equal ["#{name} in #{mold(server)} with []"], server.log.scan(/^#{name} .*$/)
    end
    assert_operator server.log.index("before_fork"), :<, server.log.index(/^- Worker/)
    assert_operator server.log.index("after_booted"), :>, server.log.rindex(/^- Worker/)
  end

  def test_after_worker_shutdown_gets_the_worker
    write "config/rondo.rb", "after_worker_shutdown { |w| warn \"gone: \#{w.index} \#{w.pid} \#{w.process_status.termsig.inspect} in \#{Process.pid}\" }"
    server = cluster
    pids = workers(server)
    Process.kill("KILL", pids.fetch(1))
    server.wait_for_log(/^gone: 1 #{pids[1]} 9 in #{server.pid}$/)
    server.stop
    assert_match(/^gone: 0 #{pids[0]} nil in #{server.pid}$/, server.log)
  end

  def test_before_restart_and_after_stopped
    write "config/rondo.rb", %w[before_restart on_restart before_drain after_stopped on_stopped].map { |name| self.class.say(name) }.join
    server = cluster
    after_signal(server, "USR2", /(phase: 1.*){2}/m)
    %w[before_restart on_restart].each { |name| assert_match(/^#{name} in #{server.pid} with \[\]$/, server.log) }
    refute_match(/(?:stopped|drain) in/, server.log)
    server.stop
    %w[before_drain after_stopped on_stopped].each { |name| assert_match(/^#{name} in #{server.pid} with \[\]$/, server.log) }
  end

  # Connections are still there at the begin of a stop.
  def test_before_drain_comes_before_the_end_of_connections
    write "config/rondo.rb", "before_worker_drain { warn 'drains' }\nafter_master_loss { |index| warn \"alone: \#{index}\" }\n"
    write "config.ru", <<~RUBY
      module Client
        def self.on_open(client) = client.write("hello")
        def self.on_shutdown(_) = warn("on_shutdown")
      end
      run ->(env) { env["upgrade.tcp"] = Client; [101, {}, []] }
    RUBY
    server = cluster(workers: 1)
    client = TCPSocket.new("127.0.0.1", server.port)
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    nil until client.readpartial(100).include?("hello")
    server.signal("INT")
    server.wait_for_log(/^drains\non_shutdown$/)
    refute_match(/alone/, server.log)
  ensure
    client&.close
  end

  def test_a_worker_learns_that_it_has_lost_its_master
    write "config/rondo.rb", "before_worker_drain { |index| warn \"drains: \#{index}\" }\nafter_master_loss { |index| warn \"alone: \#{index}\" }\n"
    server = cluster(workers: 1)
    worker = workers(server).fetch(0)
    server.signal("KILL")
    server.wait_for_log(/^alone: 0\ndrains: 0$/)
    wait_for_end_of(worker)
  end

  def test_hooks_with_a_key_share_something
    write "config/rondo.rb", <<~'RUBY'
      before_worker_boot(:kept) { |index, kept| kept[:at_boot] = index }
      before_worker_shutdown(:kept) { |index, kept| warn "kept #{kept[:at_boot]} of #{index}" }
    RUBY
    server = cluster
    server.stop
    assert_equal ["kept 0 of 0", "kept 1 of 1"], server.log.scan(/^kept .*$/).sort
  end

  def test_those_that_raise_late_are_said_and_nothing_ends
    write "config/rondo.rb", %w[after_worker_fork after_booted before_worker_shutdown after_worker_shutdown after_stopped]
      .map { |name| "#{name} { raise 'on purpose' }\n" }.join
    server = cluster
    server.wait_for_log(/^! after_booted raised/)
    assert_includes workers(server).values.map(&:to_s), get(server).body
    assert server.stop.success?
    %w[after_worker_fork before_worker_shutdown after_worker_shutdown after_stopped].each do |name|
      assert_match(%r{^! #{name} raised at config/rondo\.rb:\d: on purpose \(RuntimeError\)$}, server.log)
    end
  end

  def test_at_exit_of_the_application_runs_in_workers
    write "config.ru", "at_exit { warn \"exit in \#{Process.pid}\" }\n#{APP}"
    server = cluster
    pids = workers(server).values
    server.stop
    assert_empty(pids.reject { |pid| server.log.include?("exit in #{pid}\n") })
  end
end
