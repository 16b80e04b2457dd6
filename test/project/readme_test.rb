# frozen_string_literal: true

# A test runs every command of the README's code blocks: here, or in the suite that the table names. A command without a
# test fails, so the README cannot promise anything that was never tried. The same holds for the table of
# examples/README.md, in which every example has a row.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "net/http"
require "open3"
require "support/held_port"
require "support/server_process"
require "tmpdir"

class ReadmeTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)

  # Command => the test that runs it; a Symbol is a method of this class.
  COMMANDS = {
    "bin/rondo examples/chat/config.ru" => :test_the_chat_talks,
    "bin/rondo -w 4 examples/chat/config.ru" => :test_the_chat_talks_in_four_workers,
    "bin/rondo examples/hello.ru" => :test_the_ten_line_start,
    "bin/rondo node examples/hello.ru" => "test/node/examples_test.rb",
    "curl http://localhost:9292/" => :test_the_ten_line_start,
    "bundle add rondo" => "test/gem/gem_install_test.rb",
    "gem build --output rondo.gem rondo.gemspec" => "test/gem/gem_install_test.rb",
    "gem install rondo.gem" => "test/gem/gem_install_test.rb",
    "rondo" => :test_rondo_in_the_folder_of_an_application,
    "rondo -b tcp://127.0.0.1:3000 -e production" => :test_rondo_in_the_folder_of_an_application,
    "rondo -w 4 -t 5:16" => :test_rondo_with_workers,
    "rondo -www public" => "test/integration/files_test.rb",
    "rackup" => :test_rackup,
    "bin/rails server" => "test/apps"
  }.freeze

  EXAMPLES = {
    "bin/rondo examples/hello.ru" => :test_every_example_answers,
    "bin/rondo examples/streaming.ru" => :test_every_example_answers,
    "bin/rondo examples/counter.ru" => :test_the_counter_example_counts,
    "bin/rondo examples/echo.ru" => "test/apps/examples_test.rb",
    "bin/rondo examples/presence.ru" => "test/apps/examples_test.rb",
    "bin/rondo examples/chat/config.ru" => "test/apps/chat_test.rb",
    "bin/rondo -r redis://localhost:6379 examples/notifications/config.ru" => "test/integration/pubsub/notifications_test.rb",
    "bin/rondo -C examples/publishing/rondo.rb -S publishing.state examples/publishing/config.ru" => "test/integration/control/publishing_example_test.rb",
    "bin/rondo examples/sinatra/config.ru" => "test/apps/examples_test.rb",
    "bin/rondo examples/recipes/app/config.ru" => "test/recipes/platforms_test.rb",
    "bin/rondo -C examples/recipes/machines/config/rondo.rb examples/recipes/machines/config.ru" =>
      "test/recipes/machines_test.rb",
    "bin/rondo examples/rails_push.ru" => "test/apps/examples_test.rb"
  }.freeze

  def test_every_command_of_the_readme_is_run_somewhere
    assert_equal COMMANDS.keys.sort, commands.sort
    assert_places COMMANDS.values
  end

  def test_every_example_has_its_row_and_its_test
    rows = File.read(File.join(ROOT, "examples/README.md")).scan(/^\| `(bin\S+ [^`]+)` \|/).flatten
    assert_equal EXAMPLES.keys, rows
    assert_equal Dir["examples/**/*.ru", base: ROOT].sort, rows.map { |row| row.split.last }.sort
    assert_places EXAMPLES.values
  end

  def test_the_ten_line_start
    ServerProcess.run(File.join(ROOT, "examples/hello.ru")) do |server|
      output, status = Open3.capture2("curl", "-sS", "http://localhost:#{server.port}/")
      assert status.success?
      assert_equal "Hello, World!\n", output
    end
  end

  def test_the_chat_talks
    assert_talk
  end

  def test_the_chat_talks_in_four_workers
    assert_talk("-w", "4")
  end

  def test_rondo_in_the_folder_of_an_application
    in_folder_of_an_application do |folder|
      port, other = free_ports(2)
      environment = { "PORT" => port.to_s, "RUBYLIB" => File.join(ROOT, "lib") }
      serve(environment, Gem.ruby, File.join(ROOT, "exe/rondo"), folder: folder) do
        assert_equal "Hello, World!\n", get(port)
      end
      serve(environment, Gem.ruby, File.join(ROOT, "exe/rondo"), "-b", "tcp://127.0.0.1:#{other}",
            "-e", "production", folder: folder) { assert_equal "Hello, World!\n", get(other) }
    end
  end

  def test_rondo_with_workers
    in_folder_of_an_application do |folder|
      port, = free_ports(1)
      environment = { "PORT" => port.to_s, "RUBYLIB" => File.join(ROOT, "lib") }
      serve(environment, Gem.ruby, File.join(ROOT, "exe/rondo"), "-w", "4", "-t", "5:16", folder: folder) do
        8.times { assert_equal "Hello, World!\n", get(port) }
      end
    end
  end

  def test_rackup
    in_folder_of_an_application do |folder|
      port, = free_ports(1)
      rackup = Gem.bin_path("rackup", "rackup")
      environment = { "RUBYLIB" => File.join(ROOT, "lib") }
      serve(environment, Gem.ruby, rackup, "-o", "127.0.0.1", "-p", port.to_s,
            folder: folder) { assert_equal "Hello, World!\n", get(port) }
    end
  end

  def test_every_example_answers
    Dir[File.join(ROOT, "examples/*.ru")].each do |example|
      ServerProcess.run(example) do |server|
        paths = File.read(example).scan(%r{(?:curl -N|open) http://localhost:9292(/\w*)}).flatten
        paths = ["/"] if paths.empty?
        paths.each do |path|
          assert_equal "200", Net::HTTP.get_response(URI(server.url + path)).code, "#{example} #{path}"
        end
      end
    end
  end

  def test_the_streaming_example_sends_every_part
    ServerProcess.run(File.join(ROOT, "examples/streaming.ru")) do |server|
      assert_equal "5\n4\n3\n2\n1\nlift-off\n", Net::HTTP.get(URI("#{server.url}/each"))
      assert_equal 5, Net::HTTP.get(URI("#{server.url}/stream")).lines.size
    end
  end

  def test_the_counter_example_counts
    ServerProcess.run(File.join(ROOT, "examples/counter.ru")) do |server|
      events, presses = File.read(File.join(ROOT, "examples/counter.ru")).scan(/^#   (curl -[NX].*)$/).flatten
      IO.popen(at(server, events)) do |stream|
        assert_equal ["id: 0\n", "event: count\n", "data: 0\n", "\n"], Array.new(4) { stream.gets }
        assert system(at(server, presses), exception: true)
        assert_equal ["id: 1\n", "event: count\n", "data: 1\n", "\n"], Array.new(4) { stream.gets }
        Process.kill("TERM", stream.pid)
      end
    end
  end

  private

  # test/apps/chat_test.rb has what browsers do with it.
  def assert_talk(*args)
    ServerProcess.run(File.join(ROOT, "examples/chat/config.ru"), args: args) do |server|
      assert_includes Net::HTTP.get(URI("#{server.url}/")), "<title>Rondo chat</title>"
      IO.popen(at(server, "curl -N -H 'Accept: text/event-stream' http://localhost:9292/")) do |stream|
        said = Net::HTTP.post(URI("#{server.url}/"), '{"nick":"Ada","text":"Is anybody here?"}')
        assert_equal "204", said.code
        assert_match(/"nick":"Ada","text":"Is anybody here\?"/, stream.find { |line| line.start_with?("data: ") })
        Process.kill("TERM", stream.pid)
      end
    end
  end

  def assert_places(places)
    places.each do |place|
      place.is_a?(Symbol) ? assert_respond_to(self, place) : assert_path_exists(File.join(ROOT, place))
    end
  end

  def at(server, command)
    "exec #{command.sub("curl", "curl --silent --max-time 30").sub("http://localhost:9292", server.url)}"
  end

  def commands
    File.read(File.join(ROOT, "README.md")).scan(/^```sh\n(.*?)^```/m).flatten.flat_map(&:lines)
        .map { |line| line.sub(/\s+#.*/, "").strip }.reject(&:empty?)
  end

  def in_folder_of_an_application
    Dir.mktmpdir("rondo-readme") do |folder|
      FileUtils.cp(File.join(ROOT, "examples/hello.ru"), File.join(folder, "config.ru"))
      yield folder
    end
  end

  # These ports stay free until the end of the test.
  def free_ports(count)
    @held = Array.new(count) { HeldPort.new }
    @held.map(&:number)
  end

  def teardown
    @held&.each(&:close)
    super
  end

  def get(port)
    Net::HTTP.get(URI("http://127.0.0.1:#{port}/"))
  end

  # Runs a server that prints where it listens, yields when it does, and ends the server.
  def serve(environment, *command, folder:)
    output, input = IO.pipe
    pid = Process.spawn(environment, *command, chdir: folder, in: File::NULL, out: input, err: input)
    input.close
    wait_until_listening(output)
    yield
  ensure
    Process.kill("INT", pid)
    Process.wait(pid)
    output.close
  end

  def wait_until_listening(output, seconds: 60)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    said = +""
    until said.include?("Listening on")
      left = limit - Process.clock_gettime(Process::CLOCK_MONOTONIC)
      flunk "does not listen: #{said}" unless left.positive? && output.wait_readable(left)
      said << output.read_nonblock(4096)
    end
  rescue EOFError
    flunk "ended before it listened: #{said}"
  end
end
