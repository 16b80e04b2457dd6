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
    { "before_fork" => "[nil]", "after_booted" => "[]", "on_booted" => "[]" }.each do |name, given|
      assert_equal ["#{name} in #{mold(server)} with #{given}"], server.log.scan(/^#{name} .*$/)
    end
    assert_operator server.log.index("before_fork"), :<, server.log.index(/^- Worker/)
    assert_operator server.log.index("after_booted"), :>, server.log.rindex(/^- Worker/)
  end

  # What the blocks say has the version of the application's code in it.
  LATE = <<~'RUBY'
    SAY = ->(what) { warn "#{what} of #{VERSION_OF_CODE} in #{Process.pid}" }
    after_booted { SAY.call("booted") }
    after_worker_shutdown { raise "on purpose" }
    after_worker_shutdown do |worker|
      status = worker.process_status
      SAY.call("end of #{worker.index} #{worker.pid} phase #{worker.phase}: #{status.termsig.inspect} #{status.success?.inspect}")
    end
    before_restart { |launcher| SAY.call("restart by #{launcher.class} with #{launcher.stats[:booted_workers]}") }
    before_restart(&->() { SAY.call("restart without argument") })
    after_stopped { raise "on purpose" }
    on_stopped { SAY.call("stopped") }
    before_drain { warn "drains in #{Process.pid}" }
  RUBY

  def said(server, from: 0)
    server.log.byteslice(from..).scan(/^(.* of (?:one|two) in \d+)$/).flatten
  end

  # The processes of a generation are its mold and its workers.
  def generation(server)
    server.wait_for_log(/^booted of/)
    [mold(server), *workers(server).values_at(0, 1)]
  end

  def test_hooks_run_where_the_application_is_loaded
    write "config/rondo.rb", LATE
    server = cluster
    mold, *pids = generation(server)
    Process.kill("KILL", pids[1])
    server.wait_for_log(/^end of 1 #{pids[1]} phase 0: 9 nil of one in #{mold}$/)
    assert_match(%r{^! after_worker_shutdown raised at config/rondo\.rb:3: on purpose \(RuntimeError\)$}, server.log)
    wait_for_workers(server, 3)
    mold = check_hooks_of_a_phased_restart(server, mold, pids[0], workers(server).fetch(1))
    check_hooks_of_a_restart(server, mold, *workers(server).values_at(0, 1))
  end

  # The process of after_booted ends, so after_stopped comes.
  def check_hooks_of_a_phased_restart(server, mold, *pids)
    write "config.ru", APP.sub('"one"', '"two"')
    from = server.log.bytesize
    after_signal(server, "USR1", /^booted of two/)
    ends = pids.each_with_index.map { |pid, index| "end of #{index} #{pid} phase 0: nil true of one in #{mold}" }
    assert_equal [*ends, "stopped of one in #{mold}", "booted of two in #{mold(server)}"], said(server, from: from)
    mold(server)
  end

  def check_hooks_of_a_restart(server, mold, *pids)
    from = server.log.bytesize
    after_signal(server, "USR2", /^booted of two/)
    ends = pids.each_with_index.map { |pid, index| "end of #{index} #{pid} phase 1: nil true of two in #{mold}" }
    assert_equal ["restart by Rondo::LauncherView with 2 of two in #{mold}", "restart without argument of two in #{mold}",
                  *ends, "booted of two in #{mold(server)}"], said(server, from: from)
    assert_operator server.log.index("restart without"), :<, server.log.index("- Restarting...\n")
    refute_match(/^drains in/, server.log)
    check_hooks_of_a_stop(server, mold(server), *workers(server).values_at(0, 1))
  end

  def check_hooks_of_a_stop(server, mold, *pids)
    from = server.log.bytesize
    assert server.stop.success?
    ends = pids.each_with_index.map { |pid, index| "end of #{index} #{pid} phase 2: nil true of two in #{mold}" }
    *first, last = said(server, from: from)
    assert_equal [ends.sort, "stopped of two in #{mold}"], [first.sort, last]
    assert_match(/^drains in #{server.pid}$/, server.log)
    assert_operator server.log.index("stopped of two in #{mold}"), :<, server.log.index("- Goodbye!")
  end

  # Nothing else of the server waits for it, and what it delays has a deadline, also in sum.
  def test_a_hook_that_does_not_return
    write "config/rondo.rb", <<~RUBY
      worker_shutdown_timeout 3
      after_worker_shutdown { |worker| warn("hangs"); sleep }
      before_restart { exit 7 }
      before_restart { warn "hangs too"; sleep }
      after_stopped { warn "stopped" }
    RUBY
    server = cluster
    Process.kill("KILL", workers(server).fetch(1))
    server.wait_for_log(/^! after_worker_shutdown did not return within 1 s, and was ended$/)
    wait_for_workers(server, 3)
    from = server.log.bytesize
    restart(server, "USR2")
    assert_match(/^! before_restart called exit, which ends nothing there$/, server.log.byteslice(from..))
    assert server.stop.success?
    assert_match(/^stopped$/, server.log)
  end

  def test_the_mold_that_should_call_a_hook_dies
    write "config/rondo.rb", <<~RUBY
      after_booted { warn "booted in \#{Process.pid}" }
      after_worker_shutdown { |worker| warn("gone \#{worker.pid} in \#{Process.pid}"); Process.kill("KILL", $$) if File.exist?("die") }
      after_stopped { warn "stopped in \#{Process.pid}" }
    RUBY
    server = cluster
    first = server.wait_for_log(/^booted in (\d+)/)[1].to_i
    server.signal("STOP") # or the next mold may be there first
    worker = workers(server).fetch(0)
    Process.kill("KILL", first)
    Process.kill("KILL", worker)
    server.signal("CONT")
    server.wait_for_log(/^! The mold .* ended with SIGKILL; the next one starts for its hooks$/)
    second = server.wait_for_log(/^gone #{worker} in (\d+)$/)[1].to_i
    refute_equal first, second
    server.wait_for_log(/^booted in #{second}$/)
    wait_for_workers(server, 3)
    check_a_mold_that_dies_in_a_hook(server, second)
  end

  def check_a_mold_that_dies_in_a_hook(server, second)
    write "die", ""
    from = server.log.bytesize
    Process.kill("KILL", workers(server).fetch(0))
    server.wait_for_log(/^! after_worker_shutdown has not returned: the mold \(PID: #{second}\) ended with SIGKILL$/)
    File.delete(File.join(@folder, "die"))
    wait_for_workers(server, 1, from: from)
    third = server.wait_for_log(/^booted in (\d+)/, from: from)[1].to_i
    server.signal("STOP")
    Process.kill("KILL", third)
    wait_for_end_of(third)
    server.signal("TERM")
    server.signal("CONT")
    server.wait_for_log(/^- Goodbye!/)
    assert(server.log.include?("! after_stopped: not called, because the mold has died\n") || server.log.match?(/^stopped in (?!#{third})/), server.log)
  end

  # As by systemd or a terminal that ends.
  def test_a_stop_of_the_whole_process_group
    write "config/rondo.rb", "after_worker_shutdown { raise Exception, 'on purpose' }\nafter_stopped { warn 'stopped' }\n"
    server = cluster(spawn: { pgroup: true })
    Process.kill("TERM", -server.pid)
    server.wait_for_log(/^- Goodbye!/)
    assert_equal 2, server.log.scan(/^! after_worker_shutdown raised on purpose \(Exception\)$/).size
    assert_match(/^stopped$/, server.log)
  end

  # The mold that has been asked is gone before it answers.
  def test_a_phased_restart_during_a_refork
    write "config/rondo.rb", "worker_shutdown_timeout 6\nbefore_refork { warn 'begins'; sleep unless File.exist?('go') }\n" \
                             "after_refork { warn 'reforked' }\n"
    server = cluster
    server.signal("URG")
    server.wait_for_log(/^begins$/)
    asked = mold(server)
    restart(server, "USR1", phase: 1)
    wait_for_end_of(asked) # the restart ends with it: no refork begins before
    write "go", ""
    server.signal("URG")
    server.wait_for_log(/^reforked$/)
    assert server.stop.success?
  end

  # pumactl sends URG. The hooks are called where workers are forked from.
  def test_refork
    write "config/puma.rb", <<~'RUBY'
      fork_worker
      on_refork(:kept) { |_, kept| kept[:n] = 1; warn "before refork in #{Process.pid}" }
      after_refork("kept") { |*given| warn "after refork in #{Process.pid} with #{given.inspect}" }
    RUBY
    server = cluster
    before, mold, from = workers(server).values, mold(server), server.log.bytesize
    server.signal("URG")
    server.wait_for_log(/^after refork in #{mold} with \[nil, \{:?n(?:=>|: )1\}\]$/)
    wait_for_end_of(*before)
    lines = server.log.byteslice(from..)
    assert_operator lines.index("before refork in #{mold}"), :<, lines.index("- Worker 0")
    assert_operator lines.rindex(/^- Worker 1 .*phase: 0$/), :<, lines.index("after refork")
    assert_equal 2, lines.scan(/^- Worker/).size
    assert_includes workers(server).values, get(server).body.to_i
  end

  # Puma's fork_worker: once, when the first worker has answered so many, and it counts the application as loaded.
  def test_a_refork_after_requests
    write "config/puma.rb", "fork_worker 20\npreload_app! false\nworker_check_interval 0.1\nafter_refork { warn 'reforked' }\n"
    write "config.ru", "warn \"loads in \#{Process.pid}\"\n#{APP}"
    server = cluster
    before = workers(server)
    assert_equal ["loads in #{mold(server)}"], server.log.scan(/^loads in .*/)
    ask_until(server) { server.log.include?("reforked") }
    wait_for_end_of(*before.values)
    after = workers(server)
    ask_until(server, 200)
    assert_equal 1, server.log.scan("- Starting worker refork").size
    assert_equal after, workers(server)
    assert_equal ["loads in #{mold(server)}"], server.log.scan(/^loads in .*/)
  end

  def ask_until(server, count = 20_000)
    count.times do
      return if block_given? && yield

      get(server)
    end
    flunk "no refork" if block_given?
  end

  # The workers have ended, and the mold is in its last hook.
  def test_a_second_signal_hurries_a_mold_that_leaves
    File.mkfifo(File.join(@folder, "gate"))
    write "config/rondo.rb", "worker_shutdown_timeout 600\nafter_stopped { warn 'in the last hook'; File.read('gate') }\n"
    server = cluster(workers: 1)
    mold = mold(server)
    server.signal("INT")
    server.wait_for_log(/^in the last hook$/)
    server.signal("INT")
    server.wait_for_log(/^- Stopping at once$/)
    server.wait_for_log(/^! Killed the mold \(PID: #{mold}\): it took too long to end$/)
    server.wait_for_log(/^- Goodbye!$/)
    assert_equal 1, server.log.scan("in the last hook").size
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
