# frozen_string_literal: true

# solid_queue's own plugin in a cluster: there is one supervisor, never two and never none for long, and jobs run.
# SPDX-License-Identifier: MIT

require_relative "plugin_case"

class SolidQueueTest < PluginCase
  def setup
    super
    lay_out "jobs"
    bundled "schema.rb"
  end

  def configure(*lines)
    write "config/puma.rb", ["plugin :solid_queue", *lines].join("\n")
  end

  def lines
    File.exist?(File.join(@folder, "lines")) ? read("lines").lines.map(&:chomp) : []
  end

  def supervisors
    lines.grep(/\A(start|exit) /)
  end

  # A job that the server takes now.
  def assert_jobs_run(server, word)
    assert_equal word, get(server, "/#{word}").body, server.log
    eventually("the job #{word}") { lines.include?("job #{word}") }
  end

  # @param before [Array<String>] processes of those before
  # @return [String] its process
  def wait_for_supervisor(*before)
    eventually("a supervisor besides #{before}") do
      word, pid = supervisors.last&.split
      return pid if word == "start" && !before.include?(pid)
    end
  end

  # Each one has ended before the next one begins.
  def assert_one_after_the_other
    supervisors.each_slice(2) do |start, exit|
      assert_match(/\Astart/, start)
      assert_equal start.sub("start", "exit"), exit if exit
    end
  end

  # Boots, restarts in both ways, and keeps the supervisor of the generation that serves.
  # @return [String] the process of the last supervisor
  def check_restarts(server)
    first = wait_for_supervisor
    assert_jobs_run(server, "one")
    write "broken", ""
    after_signal(server, "USR1", /Generation 1 is not used/)
    File.delete(File.join(@folder, "broken"))
    assert_equal ["start #{first}"], supervisors
    server.signal("USR1")
    second = wait_for_supervisor(first)
    assert_one_after_the_other
    assert_jobs_run(server, "two")
    server.signal("USR2")
    third = wait_for_supervisor(first, second)
    assert_one_after_the_other
    assert_jobs_run(server, "three")
    third
  end

  def check_forks(gemfile)
    configure
    server = cluster(gemfile: gemfile)
    last = check_restarts(server)
    refute_equal mold(server).to_s, last
    # A supervisor that dies stops the server, which is what the plugin wants.
    Process.kill("KILL", last.to_i)
    server.wait_for_log(/Detected Solid Queue has gone away, stopping Puma/)
    server.wait_for_log(/^- Goodbye!/)
    refute_match(/Stopping at once/, server.log)
    assert_equal 3, supervisors.grep(/start/).size
  end

  def test_fork
    check_forks(WITHOUT_PUMA)
  end

  def test_fork_with_the_gem_puma
    check_forks(WITH_PUMA)
  end

  def test_async
    configure("solid_queue_mode :async")
    server = cluster
    last = check_restarts(server)
    assert_equal mold(server).to_s, last
    server.stop(signal: "TERM")
    assert_equal "exit #{last}", supervisors.last
  end

  # TERM to the whole group, as systemd sends it.
  def test_term_for_all
    configure
    server = cluster(spawn: { pgroup: true })
    pid = wait_for_supervisor
    Process.kill("TERM", -server.pid)
    server.wait_for_log(/^- Goodbye!/)
    eventually("its end") { supervisors.last == "exit #{pid}" }
    refute_match(/Stopping at once/, server.log)
  end

  def test_without_workers
    configure
    server = start("-w", "0")
    pid = wait_for_supervisor
    assert_jobs_run(server, "one")
    server.signal("USR2")
    second = wait_for_supervisor(pid)
    assert_one_after_the_other
    server.stop
    assert_equal "exit #{second}", supervisors.last
  end
end
