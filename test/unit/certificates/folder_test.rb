# frozen_string_literal: true

# A folder with keys: who may read it, what other processes see of a change, and one of them at a time.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/certificates/folder"
require "support/in_child"
require "tmpdir"

class CertificatesFolderTest < Minitest::Test
  include InChild

  Folder = Rondo::Certificates::Folder
  Failed = Rondo::Certificates::Failed

  def setup
    @root = Dir.mktmpdir
    @folder = Folder.new(File.join(@root, "state/keys"))
  end

  def teardown
    FileUtils.rm_rf(@root)
  end

  def mode(path)
    File.stat(path).mode & 0o777
  end

  def test_where_it_is
    assert_equal "/s/rondo/x", Folder.place("x", { "XDG_STATE_HOME" => "/s" })
    home = File.join(Dir.home, ".local/state/rondo/x")
    assert_equal home, Folder.place("x", {})
    assert_equal home, Folder.place("x", { "XDG_STATE_HOME" => "relative" })
  end

  def test_it_is_for_its_owner_alone
    umask = File.umask(0)
    path = @folder.write("a/key.pem", "secret")
    assert_equal [0o700, 0o600], [mode(File.dirname(path)), mode(path)]
    @folder.write("cert.pem", "open", mode: 0o644)
    assert_equal [0o700, 0o644], [mode(@folder.path), mode(@folder.at("cert.pem"))]
  ensure
    File.umask(umask)
  end

  def test_what_root_writes_is_for_its_owner
    skip "the rights of root are missing" unless Process.euid.zero?
    FileUtils.mkdir_p(@folder.path)
    File.chown(65_534, 65_534, @folder.path)
    @folder.locked { @folder.write("a/b/key.pem", "secret") }
    made = %w[lock a a/b a/b/key.pem].map { |name| File.stat(@folder.at(name)) }
    assert_equal [[65_534, 65_534]], made.map { |stat| [stat.uid, stat.gid] }.uniq
  end

  def test_a_file_is_replaced_as_a_whole
    @folder.write("file", "one")
    before = File.open(@folder.at("file"))
    @folder.write("file", "two")
    assert_equal %w[one two], [before.read, @folder.read("file")]
    assert_equal ["file"], Dir.children(@folder.path)
  ensure
    before&.close
  end

  # In a container every start has the same process number.
  def test_a_half_written_file_of_an_earlier_process_is_no_obstacle
    @folder.write("file", "one")
    File.write("#{@folder.at("file")}.#{Process.pid}.new", "tw")
    @folder.write("file", "two")
    assert_equal "two", @folder.read("file")
  end

  # What a crash of the machine leaves: strace sees the folder on the disk after the new name.
  def test_the_new_name_is_on_the_disk_before_anybody_relies_on_it
    skip "the right to trace (ptrace) is missing" unless system("strace", "-o", File::NULL, "true", err: File::NULL)
    trace = File.join(@root, "trace")
    code = "require 'rondo/certificates/folder'; Rondo::Certificates::Folder.new(ARGV[0]).write('live/key.pem', 'x')"
    assert system("strace", "-f", "-y", "-o", trace, "-e", "trace=fsync,rename,renameat,renameat2", RbConfig.ruby,
                  *$LOAD_PATH.grep(/rondo|lib\z/).flat_map { |path| ["-I", path] }, "-e", code, @folder.path)
    calls = File.readlines(trace).filter_map { |line| line[/(?:fsync|rename\w*)\(.*(?=\) += 0)/] }
    assert_match(%r{\Afsync\(\d+<#{@folder.path}/live/key\.pem\.\h+\.new>}, calls[0])
    assert_match(/\Arename/, calls[1])
    assert_match(%r{\Afsync\(\d+<#{@folder.path}/live>}, calls[2])
  end

  # Yields in a process that may write so many bytes into a file, as on a disk that gets full.
  # @return [String] what the block returns
  def with_room_for(bytes)
    in_child do
      trap("XFSZ", "IGNORE")
      Process.setrlimit(:FSIZE, bytes)
      yield
    end
  end

  def test_a_disk_that_is_full
    @folder.write("key.pem", "old")
    said = with_room_for(100) { assert_raises(Failed) { @folder.write("key.pem", "x" * 200) }.message }
    assert_equal "cannot write #{@folder.at("key.pem")}: File too large", said
    assert_equal [["key.pem"], "old"], [Dir.children(@folder.path), @folder.read("key.pem")]
  end

  def test_what_ends_the_writer_leaves_no_half_of_a_key
    bytes = Object.new
    bytes.define_singleton_method(:to_s) { raise Interrupt }
    assert_raises(Interrupt) { @folder.write("key.pem", bytes) }
    assert_empty Dir.children(@folder.path)
  end

  # The lock is not what failed.
  def test_an_error_of_who_has_the_lock_is_its_own
    assert_raises(Errno::EPIPE) { @folder.locked { raise Errno::EPIPE } }
    assert_equal 1, @folder.locked(wait: false) { 1 }
  end

  def test_a_folder_that_everybody_can_change
    FileUtils.mkdir_p(@folder.path)
    File.chmod(0o777, @folder.path)
    words = "#{@folder.path} can be changed by others"
    assert_equal words, assert_raises(Failed) { @folder.locked { flunk } }.message
    assert_equal words, assert_raises(Failed) { @folder.write("ca.pem", "x") }.message
    FileUtils.mkdir(@folder.at("live"), mode: 0o700) # who can change the folder can exchange this one
    assert_equal words, assert_raises(Failed) { @folder.write("live/a.pem", "x") }.message
  end

  # Another process, which may be somebody else's, makes the same folder at the same time.
  def test_a_folder_that_another_process_makes_meanwhile
    FileUtils.mkdir_p(File.dirname(@folder.path))
    asked = TracePoint.new(:c_return) do |point|
      next unless point.method_id == :directory? && point.return_value == false

      asked.disable
      Dir.mkdir(@folder.path)
      File.chmod(0o777, @folder.path)
    end
    asked.enable { assert_match(/can be changed by others/, assert_raises(Failed) { @folder.make }.message) }
  end

  def test_what_is_not_there
    assert_nil @folder.read("none")
    assert_nil @folder.remove("none")
  end

  def test_a_failure_is_a_line_that_names_the_file
    File.write(File.join(@root, "state"), "a file")
    error = assert_raises(Failed) { @folder.write("key.pem", "x") }
    assert_match(%r{\Acannot write #{@root}/state/keys/key\.pem: (?:Not a directory|File exists)\z}, error.message)
    error = assert_raises(Failed) { @folder.locked { flunk } }
    assert_match(%r{\Acannot lock #{@root}/state/keys/lock: }, error.message)
  end

  def test_one_process_at_a_time
    own, other = IO.pipe, IO.pipe
    pid = fork do
      @folder.locked { own[1].write(".") && other[0].read(1) }
      exit!(0)
    end
    own[0].read(1)
    assert_equal :busy, @folder.locked(wait: false) { flunk }
    other[1].write(".")
    assert_equal 7, @folder.locked { 7 }
  ensure
    Process.wait(pid)
  end
end
