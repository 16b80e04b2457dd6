# frozen_string_literal: true

# The hooks of a configuration file, called by Puma and by Rondo from boot to end: the same ones as often, with the same
# arguments. tools/install_puma installs Puma.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "tmpdir"

class PumaHooksTest < Minitest::Test
  ROOT = File.expand_path("../../..", __dir__)
  GEMS = File.join(ROOT, "build/puma/gems")
  PATIENCE = 120
  NAMES = %w[before_fork before_worker_fork after_worker_fork before_worker_boot before_worker_shutdown after_worker_shutdown
             before_restart before_thread_start before_thread_exit after_booted after_stopped].freeze
  # What an object is called here, and in Puma.
  CLASSES = { "LauncherView" => "Launcher", "EndedWorker" => "WorkerHandle", "ThreadControl" => "ServerPluginControl" }.freeze
  APP = "HookedApp = true\nrun ->(_env) { [200, {}, []] }\n"
  CONFIG = <<~RUBY
    workers 2
    threads 1, 1
    bind "tcp://127.0.0.1:0"
    pidfile "pid"
    #{NAMES.inspect}.each do |name|
      public_send(name) do |*given|
        words = given.map { |one| one.is_a?(Integer) ? one : one.class.name.split("::").last }
        line = [name, *words, defined?(HookedApp) ? "loaded" : "not loaded"].join(" ")
        File.open("hooks", "a") { |file| file.syswrite(line + "\\n") }
      end
    end
  RUBY

  def self.worker(index)
    ["before_worker_fork #{index}", "after_worker_fork #{index}", "before_worker_boot #{index}", "before_thread_start ServerPluginControl"]
  end

  def self.end_of_worker(index)
    ["before_worker_shutdown #{index}", "before_thread_exit", "after_worker_shutdown WorkerHandle"]
  end

  BOOT = ["before_fork NilClass", *worker(0), *worker(1), "after_booted"].freeze
  LAST = [*end_of_worker(0), *end_of_worker(1)].freeze
  CRASH = ["after_worker_shutdown WorkerHandle", *worker(1)].freeze
  RESTART = ["before_restart Launcher", *BOOT, *LAST].freeze
  PHASED = [*worker(0), *worker(1), *LAST, "after_booted"].freeze
  STOP = [*LAST, "after_stopped"].freeze

  def before_setup
    super
    GC.stress = false # the servers are other processes
  end

  def setup
    @gems = Dir[File.join(GEMS, "ruby/*/{gems,extensions/*/*}/{puma,nio4r}-*")]
    skip "Puma is not installed: tools/install_puma does that" if @gems.empty?
    @folder = Dir.mktmpdir("rondo-hooks")
    File.write(File.join(@folder, "config.ru"), APP)
  end

  def teardown
    Process.kill("KILL", -@waiter.pid) if @waiter&.alive?
    @waiter&.join
    FileUtils.rm_rf(@folder) if @folder
  end

  def start(server, config)
    @seen = 0
    FileUtils.rm_f(%w[hooks pid log].map { |name| File.join(@folder, name) })
    File.write(File.join(@folder, "puma.rb"), config)
    puma = @gems.find { |path| path.match?(%r{/gems/puma-[^/]*\z}) }
    folders = server == :puma ? @gems.flat_map { |path| [path, File.join(path, "lib")] } : [File.join(ROOT, "lib")]
    program = server == :puma ? File.join(puma, "bin/puma") : File.join(ROOT, "exe/rondo")
    env = { "RUBYLIB" => folders.join(":"), "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil, "RACK_ENV" => nil }
    pid = Process.spawn(env, RbConfig.ruby, program, "-C", "puma.rb", chdir: @folder, in: File::NULL, %i[out err] => File.join(@folder, "log"), pgroup: true)
    @waiter = Process.detach(pid)
  end

  def read(name)
    File.read(File.join(@folder, name))
  rescue Errno::ENOENT
    ""
  end

  # @return [Array<String>] hooks with their arguments, and whether the application was loaded there
  def called
    read("hooks").lines(chomp: true)
  end

  def plain(line)
    line.sub(/ (not )?loaded\z/, "").gsub(Regexp.union(CLASSES.keys), CLASSES)
  end

  # Waits for exactly these, in whatever order, because workers begin beside each other.
  # @return [Array<String>] as {#called}
  def assert_called(expected, what)
    found = nil
    eventually(-> { "#{what}: #{missing(expected, found)}" }) { (found = called.drop(@seen)).size >= expected.size }
    assert_equal expected.sort, found.map { |line| plain(line) }.sort, what
    @seen += found.size
    found
  end

  def eventually(what)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until (found = yield)
      flunk "this never came: #{what.call}\n#{read("log")}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, 0.02)
    end
    found
  end

  # @return [Integer]
  def process_of_worker(index)
    eventually(-> { "worker #{index}" }) { read("log")[/Worker #{index} \(PID: (\d+)\) booted/, 1]&.to_i }
  end

  def missing(expected, found)
    found.each_with_object(expected.dup) { |line, left| (at = left.index(plain(line))) && left.delete_at(at) }
  end

  def signal(name, pid = @waiter.pid)
    Process.kill(name, pid)
  end

  def check_end(server)
    signal("TERM")
    found = assert_called(STOP, "#{server} TERM")
    assert @waiter.join(PATIENCE)
    found
  end

  # With the application loaded before the workers are forked.
  # @return [Array<String>]
  def check(server)
    start(server, "preload_app!\n#{CONFIG}")
    found = assert_called(BOOT, "#{server} boot")
    signal("KILL", process_of_worker(1))
    found += assert_called(CRASH, "#{server} crash")
    signal("USR2")
    found + assert_called(RESTART, "#{server} USR2") + check_end(server)
  end

  def test_from_boot_to_end
    %i[puma rondo].each { |server| assert_empty check(server).grep(/not loaded/) }
  end

  # A phased restart of Puma keeps the process that forks. Here it is another one, with new code, and the one before ends.
  def test_a_phased_restart
    { puma: PHASED, rondo: ["before_fork NilClass", *PHASED, "after_stopped"] }.each do |server, phased|
      start(server, "preload_app! false\n#{CONFIG}")
      assert_called(BOOT, "#{server} boot")
      signal("USR1")
      assert_called(phased, "#{server} USR1")
      check_end(server)
    end
  end
end
