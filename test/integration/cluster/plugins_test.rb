# frozen_string_literal: true

# Plugins of Puma in a cluster: in which process they run, from when to when, and what they can ask of the server.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"

class ClusterPluginsTest < ClusterCase
  CONFIG = <<~RUBY
    $LOAD_PATH.unshift Dir.pwd
    plugin :probe
    plugin :alone if ENV["ALONE"]
    probe_word "hello"
    activate_control_app "unix://control.sock"
    before_worker_boot { raise "no luck" if File.exist?("unlucky") }
  RUBY
  # It says what happens to it. When a file has the name of a signal or a method, it sends or calls that.
  PROBE = <<~RUBY
    class Puma::DSL
      def probe_word(word)
        @options[:probe_word] = word
      end
    end

    Puma::Plugin.create do
      def start(launcher)
        say = ->(what) { launcher.log_writer.log "probe: \#{what} in \#{Process.pid}" }
        say.call "start with \#{launcher.options[:probe_word]} and \#{launcher.options[:workers]}"
        control = %i[control_url control_auth_token].map { |key| launcher.options[key] }
        launcher.events.after_booted do
          say.call "booted"
          File.write("told.new", [*control, launcher.binder.ios.map { |io| io.addr[1] }, launcher.connected_ports].inspect)
          File.rename("told.new", "told")
          master = Process.ppid
          @child = fork do
            trap("TERM", "DEFAULT")
            sleep 0.1 while File.directory?("/proc/\#{master}") # or it would keep the log of a test that fails
          end
        end
        launcher.events.register(:state) { |state| File.write("child", "\#{@child}\\n") if state == :running }
        launcher.events.after_stopped { say.call "stopped" }
        launcher.events.before_restart { say.call "restart" }
        in_background do
          say.call "background of \#{Puma.stats_hash[:booted_workers]}"
          loop do
            sleep 0.05
            File.delete("asked") && Process.kill("INT", $$) if File.exist?("asked")
            File.delete("method") && launcher.phased_restart if File.exist?("method")
          end
        ensure
          say.call "end of background"
        end
      end
    end
  RUBY
  # It listens as soon as it starts, so there can be only one of it.
  ALONE = <<~RUBY
    Puma::Plugin.create do
      def start(launcher)
        server = UNIXServer.new("alone.sock")
        launcher.log_writer.log "alone: start in \#{Process.pid}"
        launcher.events.after_stopped do
          server.close
          File.delete("alone.sock")
        end
      end
    end
  RUBY
  # /stats: what a worker says of all.
  APP_WITH_STATS = <<~RUBY
    run lambda { |env|
      if env["PATH_INFO"] == "/slow"
        warn "slow began"
        sleep 0.01 until File.exist?("go")
      end
      if env["PATH_INFO"] == "/daemon" # nobody's child but the master's, soon
        out, into = IO.pipe
        Process.wait(fork { into.write(fork { sleep 600 }) && exit!(0) })
        next [200, {}, [out.readpartial(20)]]
      end
      server = Puma::Server.current
      [200, {}, [[Process.pid, Puma.stats_hash, server.max_threads, server.shutting_down?,
                  Puma.cli_config.options[:workers], Puma.stats.class,
                  env["puma.config"].options[:max_threads], env["rack.after_reply"]].inspect]]
    }
  RUBY

  def setup
    super
    write "config.ru", APP_WITH_STATS
    write "config/puma.rb", CONFIG
    write "puma/plugin/probe.rb", PROBE
    write "puma/plugin/alone.rb", ALONE
  end

  def said(server, from: 0)
    server.log.byteslice(from..).scan(/^probe: (.*) in (\d+)$/).map { |what, pid| [what, pid.to_i] }
  end

  # @return [Integer] the process that the plugin has forked last
  def forked
    eventually("the child") { File.exist?(File.join(@folder, "child")) && read("child") =~ /\A\d+\n\z/ && read("child").to_i }
  end

  def test_plugins_live_in_the_mold_of_their_generation
    server = cluster("-t", "1:3", env: { "ALONE" => "1" })
    ["booted", "background of 2"].each { |what| server.wait_for_log(/^probe: #{what} in \d+$/) }
    first = mold(server)
    assert_equal ["start with hello and 2", "booted", "background of 2"].map { |what| [what, first] }.sort, said(server).sort
    assert_operator server.log.index("probe: start"), :<, server.log.index("- Worker 0")
    assert_operator server.log.index("probe: booted"), :>, server.log.rindex(/^- Worker/)
    check_what_it_was_told(server)
    check_statistics(server)
    check_after_a_crash(server)
    check_a_generation_that_fails(server)
    second = check_a_phased_restart(server, first)
    check_a_restart(server, second)
  end

  # The address of the control server, its random token, and the addresses of the server.
  def check_what_it_was_told(server)
    eventually("what it was told") { File.exist?(File.join(@folder, "told")) }
    url, token, ports, connected = eval(read("told")) # rubocop:disable Security/Eval -- of our own plugin
    File.delete(File.join(@folder, "told")) # each generation writes it
    assert_equal [[server.own_port]] * 2, [ports, connected]
    socket = UNIXSocket.new(XorProxy.front(url).delete_prefix("unix://"))
    socket.write("GET /stats?token=#{token} HTTP/1.0\r\n\r\n")
    assert_match(/\AHTTP\S+ 200 .*"workers"/m, socket.read)
    token
  ensure
    socket&.close
  end

  # From a worker, of all workers.
  def check_statistics(server)
    pid, stats, *others = eval(get(server).body) # rubocop:disable Security/Eval -- of our own application
    assert_equal workers(server).sort, stats[:worker_status].map { |worker| worker.values_at(:index, :pid) }.sort
    assert_includes workers(server).values, pid
    assert_equal [2, 2, 0, 0], stats.values_at(:workers, :booted_workers, :old_workers, :phase)
    assert_equal [3, 3], (stats[:worker_status].map { |worker| worker[:last_status][:max_threads] })
    assert_equal [3, false, 2, String, 3, []], others
  end

  # Another worker is no new start of the server.
  def check_after_a_crash(server)
    from = server.log.bytesize
    Process.kill("KILL", workers(server).fetch(1))
    wait_for_workers(server, 1, from: from)
    assert_empty said(server, from: from)
  end

  def check_a_generation_that_fails(server)
    write "unlucky", ""
    from = server.log.bytesize
    after_signal(server, "USR1", /Generation 1 is not used: .*no luck/)
    File.delete(File.join(@folder, "unlucky"))
    eventually("the end of its mold") { children(server.pid).one? { |pid| title(pid).include?("rondo: mold") } }
    assert_equal ["start with hello and 2", "stopped"], said(server, from: from).map(&:first)
  end

  def check_a_phased_restart(server, first)
    from = server.log.bytesize
    child = forked
    assert alive?(child)
    write "method", ""
    server.wait_for_log(/^probe: booted in \d+$/, from: from)
    second = server.wait_for_log(/^probe: background of 2 in (\d+)$/, from: from)[1].to_i
    assert_equal [["start with hello and 2", second], ["end of background", first], ["stopped", first],
                  ["booted", second], ["background of 2", second]].sort, said(server, from: from).sort
    refute alive?(child)
    assert_operator server.log.index("probe: stopped in #{first}"), :<, server.log.index("probe: booted in #{second}")
    assert_operator server.log.index("alone: start in #{second}"), :>, server.log.index("probe: stopped in #{first}")
    assert_operator server.log.index("alone: start in #{first}"), :<, server.log.index("- Worker 0")
    eventually("one mold") { children(server.pid).one? { |pid| title(pid).include?("rondo: mold") } }
    second
  end

  def check_a_restart(server, second)
    from = server.log.bytesize
    token = check_what_it_was_told(server)
    server.signal("USR2")
    third = server.wait_for_log(/^probe: background of 2 in (\d+)$/, from: from)[1].to_i
    assert_equal [["end of background", second], ["stopped", second]],
                 said(server, from: from).select { |_, pid| pid == second }
    refute_equal second, third
    assert_equal token, check_what_it_was_told(server)
    assert_match(/^alone: start in #{third}$/, server.log)
    check_a_signal_to_itself(server, third)
  end

  # INT from a plugin to its own process stops the server as one INT does.
  def check_a_signal_to_itself(server, third)
    slow = Thread.new { get(server, "/slow") }
    server.wait_for_log(/^slow began/)
    write "asked", ""
    server.wait_for_log(/^- Gracefully shutting down workers/)
    write "go", ""
    assert_equal "200", slow.value.code
    server.wait_for_log(/^- Goodbye!/)
    assert_equal [["end of background", third], ["stopped", third]], said(server).last(2)
    refute_match(/Stopping at once/, server.log)
  end

  # A terminal sends it to the mold, too.
  def test_int_for_all_processes_is_one_int
    server = cluster(spawn: { pgroup: true })
    server.wait_for_log(/^probe: background/)
    slow = Thread.new { get(server, "/slow") }
    server.wait_for_log(/^slow began/)
    Process.kill("INT", -server.pid)
    server.wait_for_log(/- Gracefully shutting down workers/) # the plugin's child may be in the middle of a line
    write "go", ""
    assert_equal "200", slow.value.code
    server.wait_for_log(/^- Goodbye!/)
    refute_match(/Stopping at once/, server.log)
  end

  # The mold's plugins begin again in the next one, although no worker has ended.
  def test_a_mold_that_dies_is_replaced_for_its_plugins
    server = cluster
    server.wait_for_log(/^probe: background/)
    before = workers(server)
    dead = mold(server)
    from = server.log.bytesize
    child = forked
    daemon = Integer(get(server, "/daemon").body)
    Process.kill("KILL", dead)
    server.wait_for_log(/ended with SIGKILL; the next one starts for its plugins$/, from: from)
    server.wait_for_log(/^probe: booted in \d+$/, from: from)
    refute alive?(child)
    assert alive?(daemon), "it is the application's"
    server.wait_for_log(/^probe: background of 2/, from: from)
    assert_equal before, workers(server)
    refute_equal dead, mold(server)
  ensure
    Process.kill("KILL", daemon) if daemon
  end

  def test_a_plugin_that_cannot_start
    write "config/puma.rb", "$LOAD_PATH.unshift Dir.pwd\nplugin :probe\n"
    { "raise('no luck')" => "no luck \\(RuntimeError\\)", "exit" => "it called exit" }.each do |body, complaint|
      write "puma/plugin/probe.rb", "Puma::Plugin.create { def start(launcher) = #{body} }"
      [%w[-w 2], %w[-w 0]].each do |words|
        result = rondo(*words, "-b", "tcp://127.0.0.1:0")
        assert_equal 1, result.code
        assert_match(%r{plugin probe cannot start: #{complaint} at .*puma/plugin/probe\.rb:1$}, result.err)
      end
    end
  end

  # What it has forked without a block would be the server a second time.
  def test_a_plugin_that_forks
    write "config/puma.rb", "$LOAD_PATH.unshift Dir.pwd\nplugin :probe\n"
    write "puma/plugin/probe.rb", "Puma::Plugin.create { def start(launcher) = fork }"
    [%w[-w 2], %w[-w 0]].each do |words|
      server = start(*words)
      server.wait_for_log(/^! plugin probe cannot start: it has forked without a block; the copy of the server ends$/)
      server.wait_for_log(/^- Worker 1 .* booted/) if words.last == "2"
      assert_equal "200", get(server).code
      pids = descendants(server.pid)
      assert_predicate server.stop, :success?
      wait_for_end_of(*pids)
    end
  end
end
