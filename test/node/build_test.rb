# frozen_string_literal: true

# Builds: what is kept, what is refused with one line, and that nothing half-built is left behind.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "open3"
require "support/node_process"
require "support/raw_client"
require "tmpdir"

class NodeBuildTest < Minitest::Test
  HELLO = "run ->(_env) { [200, {}, [\"hello\"]] }\n"
  # Compiled files are shared by all tests.
  SHARED = %w[pieces engines].freeze

  def setup
    @folder = Dir.mktmpdir("rondo-node-test")
    @cache = File.join(@folder, "cache")
    FileUtils.mkdir_p(@cache)
    SHARED.each do |name|
      FileUtils.mkdir_p(File.join(NodeProcess::CACHE, name))
      File.symlink(File.join(NodeProcess::CACHE, name), File.join(@cache, name))
    end
    @servers = []
  end

  def teardown
    @servers.each(&:stop)
    FileUtils.rm_rf(@folder)
  end

  def write(name, text)
    File.join(@folder, name).tap do |path|
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, text)
    end
  end

  # @return [Array(String, Process::Status)] output and status of a start that fails, or of one with `--build`
  def run_node(*args, env: {})
    Open3.capture2e({ "RONDO_NODE_CACHE" => @cache, **env }, *NodeProcess::COMMAND, *args, chdir: @folder)
  end

  # @return [String] the line of the refusal
  def refusal(*args, status: 1, env: {})
    output, result = run_node(*args, env: env)
    lines = output.lines.grep_v(/\A\* Building /)
    assert_equal [1, status], [lines.size, result.exitstatus], output
    lines.first.chomp
  end

  def start(app, **options)
    NodeProcess.new(app, env: { "RONDO_NODE_CACHE" => @cache }, **options).tap { |server| @servers << server }
  end

  def answer(server)
    RawClient.open(server.url) { |client| client.request("GET / HTTP/1.1\r\nhost: a\r\n\r\n").body }
  end

  def builds
    Dir.children(File.join(@cache, "builds"))
  rescue Errno::ENOENT
    []
  end

  def test_a_build_is_kept_until_a_source_changes
    app = write("config.ru", "require_relative \"lib/word\"\nrun ->(_env) { [200, {}, [WORD]] }\n")
    write("lib/word.rb", "WORD = \"one\"\n")
    assert_equal "one", answer(start(app))
    again = start(app)
    assert_equal "one", answer(again)
    refute_includes again.log, "Building"
    write("lib/word.rb", "WORD = \"two\"\n")
    changed = start(app)
    assert_equal "two", answer(changed)
    assert_includes changed.log, "Building"
    assert_equal 1, builds.size
  end

  # What takes time in a start are Opal and Rack.
  def test_a_kept_build_needs_no_opal
    app = write("config.ru", HELLO)
    start(app)
    trace = "require \"rondo/node/build\"; Rondo::Node::Build.new(ARGV.first).call; " \
            "print $LOADED_FEATURES.grep(%r{/(?:opal|rack|parser|json|fileutils)[./]}).size"
    output, = Open3.capture2e({ "RONDO_NODE_CACHE" => @cache }, *NodeProcess::COMMAND.first(3), "-e", trace, app)
    assert_equal "0", output
  end

  def test_a_written_build_is_started_by_node_alone
    app = write("config.ru", HELLO)
    output, status = run_node("--build", "out", app)
    assert status.success?, output
    assert_equal %w[application.js application.js.map main.js redis.js server.js], Dir.children(File.join(@folder, "out")).sort
    assert_match(%r{Start it with: node #{@folder}/out/main.js}, output)
    server = started_by("node", File.join(@folder, "out/main.js"))
    assert_equal "hello", answer(server)
    output, status = run_node("--build", "out", app) # the same folder again
    assert status.success?, output
  end

  def test_a_folder_with_other_files_is_not_overwritten
    write("out/precious.txt", "mine")
    assert_match(/has files in it that are not a build/, refusal("--build", "out", write("config.ru", HELLO)))
    assert_equal "mine", File.read(File.join(@folder, "out/precious.txt"))
  end

  def test_a_wrong_syntax_has_file_and_line
    app = write("config.ru", "require_relative \"broken\"\n")
    write("broken.rb", "def fine\nend\n\nclass Wrong < \nend end\n")
    assert_match(%r{\Arondo node: #{@folder}/broken\.rb:5: .*unexpected}, refusal(app))
    assert_empty builds
  end

  def test_a_missing_library_has_file_and_line
    app = write("config.ru", "\nrequire \"no_such_library\"\n#{HELLO}")
    assert_match(%r{\Arondo node: #{app}:2: there is no no_such_library for Opal}, refusal(app))
    assert_empty builds
  end

  def test_a_gem_that_needs_c_is_named
    app = write("config.ru", "require \"sqlite3\"\n#{HELLO}")
    assert_match(%r{#{app}:1: the gem sqlite3 needs C}, refusal(app))
  end

  def test_a_library_that_is_only_tried_may_be_missing
    app = write("config.ru", <<~RUBY)
      begin
        require "no_such_library"
      rescue LoadError => e
        MESSAGE = e.class.name
      end
      run ->(_env) { [200, {}, [MESSAGE]] }
    RUBY
    assert_equal "LoadError", answer(start(app))
  end

  def test_no_application
    assert_equal "rondo node: there is no config.ru", refusal
    assert_equal "rondo node: there is no other.ru", refusal("other.ru")
  end

  def test_a_killed_build_leaves_nothing_that_is_used
    app = write("config.ru", HELLO)
    left = File.join(@cache, "builds", "0123456789.#{ended_process}.new")
    FileUtils.mkdir_p(left)
    File.write(File.join(left, "main.js"), "half of it")
    assert_equal "hello", answer(start(app))
    refute_path_exists left
  end

  def test_compiled_files_that_nobody_uses_are_removed
    old, used = %w[old used].map { |name| write("cache/pieces/#{name}.test", "a piece") }
    File.utime(Time.now - (31 * 24 * 3600), Time.now - (31 * 24 * 3600), old)
    start(write("config.ru", HELLO))
    assert_equal [false, true], [old, used].map { |path| File.exist?(path) }
  ensure
    FileUtils.rm_f([old, used].compact)
  end

  def test_a_damaged_build_is_made_again
    app = write("config.ru", HELLO)
    start(app).stop
    FileUtils.rm(File.join(@cache, "builds", builds.first, "main.js"))
    assert_equal "hello", answer(start(app))
  end

  def test_a_cache_that_cannot_be_written
    FileUtils.rm_rf(@cache)
    File.write(@cache, "a file")
    assert_match(/\Arondo node: cannot write to #{@cache}.*RONDO_NODE_CACHE names another folder/, refusal(write("config.ru", HELLO)))
  end

  def test_a_full_disk
    trace = "require \"rondo/node/cache\"; Rondo::Node::Cache.new(ARGV.first).replace(ARGV.last) { raise Errno::ENOSPC }"
    target = File.join(@cache, "builds/x")
    output, = Open3.capture2e(*NodeProcess::COMMAND.first(3), "-e", trace, @cache, target)
    assert_match(/the disk of #{target} is full \(Rondo::Node::Error\)/, output)
    assert_empty builds
  end

  def test_no_node
    assert_match(/\Arondo node: there is no node in PATH: install Node.js 20/, refusal(write("config.ru", HELLO), env: { "PATH" => @folder }))
  end

  def test_an_old_node
    File.chmod(0o755, write("node", "#!/bin/sh\necho v12.22.9\n"))
    path = "#{@folder}:#{ENV.fetch("PATH")}"
    assert_match(/node is too old: Node.js 20 or newer is needed, this is 12/, refusal(write("config.ru", HELLO), env: { "PATH" => path }))
  end

  def test_wrong_options
    app = write("config.ru", HELLO)
    assert_equal "rondo node: invalid option: --workerz", refusal("--workerz", app, status: 2)
    start(app) # a build, so that only the line is said
    assert_equal "rondo: --port must be a number up to 65535, not \"x\"", refusal("-p", "x", app, status: 2)
    assert_match(/\Arondo: --secure needs --cert-file and --key-file/, refusal("-s", app, status: 2))
  end

  def test_the_command_without_the_gem
    output, status = Open3.capture2e(RbConfig.ruby, "-I#{File.join(NodeProcess::ROOT, "lib")}", NodeProcess::COMMAND[3], "node")
    assert_equal ["rondo: `rondo node` needs the gem rondo-node: gem install rondo-node\n", 1], [output, status.exitstatus]
  end

  private

  # @return [Integer] an id that no process has
  def ended_process
    Process.wait(pid = Process.spawn("true")) && pid
  end

  # A build that runs without Ruby.
  def started_by(*command)
    server_class = Class.new(NodeProcess) { define_method(:command_line) { |*_| [*command, "-b", "127.0.0.1", "-p", "0"] } }
    server_class.new(nil).tap { |server| @servers << server }
  end
end
