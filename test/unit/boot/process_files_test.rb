# frozen_string_literal: true

# The pid file and the state file are written and removed, but never those of another process.
# SPDX-License-Identifier: MIT

require "test_helper"
require "tmpdir"
require "yaml"
require "rondo"
require "rondo/boot/process_files"

class ProcessFilesTest < Minitest::Test
  # Records what was logged.
  class Said < Array
    alias say push
  end

  def setup
    @folder = Dir.mktmpdir
    @pidfile = File.join(@folder, "deep", "server.pid")
    @state = File.join(@folder, "server.state")
    @said = Said.new
    FileUtils.mkdir_p(File.dirname(@pidfile))
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def files(pidfile: @pidfile, state: @state)
    Rondo::ProcessFiles.new(pidfile, state, @said)
  end

  def dead_pid
    Process.wait(pid = Process.spawn("true"))
    pid
  end

  def test_they_come_and_go
    files.tap(&:claim).write(["http://127.0.0.1:1", "unix:///x"])
    assert_equal "#{Process.pid}\n", File.read(@pidfile)
    assert_equal({ "pid" => Process.pid, "version" => Rondo::VERSION, "running_from" => Dir.pwd,
                   "addresses" => ["http://127.0.0.1:1", "unix:///x"] }, YAML.safe_load_file(@state))
    files.remove
    refute_path_exists @pidfile
    refute_path_exists @state
    assert_empty @said
  end

  # A child may run the at_exit of the program that began the server.
  def test_a_pid_file_that_is_gone_comes_back
    mine = files
    mine.restore
    refute_path_exists @pidfile
    mine.write(["http://127.0.0.1:1"])
    File.delete(@pidfile)
    mine.restore
    assert_equal "#{Process.pid}\n", File.read(@pidfile)
    files(pidfile: nil).tap { |none| none.write([]) }.restore
  end

  def test_the_permission_of_the_state_file
    Rondo::ProcessFiles.new(nil, @state, @said, permission: 0o604).write([])
    assert_equal 0o604, File.stat(@state).mode & 0o777
  end

  def test_folders_are_made
    FileUtils.rm_rf(File.dirname(@pidfile))
    files.write([])
    assert_path_exists @pidfile
  end

  def test_none_of_them_is_asked_for
    none = files(pidfile: nil, state: nil)
    none.claim
    none.write([])
    none.remove
    assert_empty Dir.glob("#{@folder}/**/*").select { |path| File.file?(path) }
  end

  def test_a_process_that_lives_is_refused
    File.write(@pidfile, "#{Process.ppid}\n")
    error = assert_raises(Rondo::ConfigurationError) { files.claim }
    assert_equal "a server is already running: #{@pidfile} names process #{Process.ppid}", error.message
    files.remove
    assert_path_exists @pidfile
  end

  def test_a_process_that_died_is_replaced_with_a_line
    pid = dead_pid
    File.write(@pidfile, "#{pid}\n")
    files.claim
    assert_equal ["! Replaced #{@pidfile}, which process #{pid} left behind"], @said
  end

  def test_a_file_of_anything_else_is_replaced
    ["", "nonsense", "-1\n", "0\n"].each do |text|
      File.write(@pidfile, text)
      files.claim
    end
    assert_equal 4, @said.size
  end

  def test_a_folder_is_no_pid_file
    error = assert_raises(Rondo::ConfigurationError) { files(pidfile: @folder).claim }
    assert_equal "cannot read #{@folder}: Is a directory", error.message
  end

  def test_our_own_file_is_there_after_a_restart
    File.write(@pidfile, "#{Process.pid}\n")
    files.claim
  end

  def test_files_of_a_successor_stay
    mine = files
    mine.write([])
    File.write(@pidfile, "1\n")
    File.write(@state, "---\npid: 1\n")
    mine.remove
    assert_equal ["1\n", "---\npid: 1\n"], [File.read(@pidfile), File.read(@state)]
  end

  def test_a_fork_of_the_application_removes_nothing
    mine = files
    mine.write([])
    Process.wait(fork do
      mine.remove
      exit! 0
    end)
    assert_path_exists @pidfile
  end

  def test_where_nothing_can_be_written
    File.write(File.join(@folder, "file"), "")
    error = assert_raises(Rondo::ConfigurationError) { files(pidfile: File.join(@folder, "file/x")).write([]) }
    assert_match(%r{\Acannot write .*/file/x: }, error.message)
  end
end
