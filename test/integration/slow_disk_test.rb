# frozen_string_literal: true

# Disks that do not answer: requests that need them wait, and no others. A call hangs while the others are served, so no
# clock decides.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "support/raw_client"
require "support/slow_disk"

class SlowDiskTest < ShellCase
  APPLICATION = <<~'RUBY'
    run lambda { |env|
      body = env["rack.input"]&.read.to_s
      [200, { "content-type" => "text/plain" }, ["#{env["PATH_INFO"]} #{body.bytesize} #{body.sum}"]]
    }
  RUBY
  SENDER = <<~'RUBY'
    run lambda { |env|
      case env["PATH_INFO"]
      when "/sent" then [200, {}, File.open(ENV.fetch("LARGE"))]
      else [200, { "content-type" => "text/plain" }, ["#{env["PATH_INFO"]} 0 0"]]
      end
    }
  RUBY
  UPLOAD = Random.new(7).bytes(3_000_000)

  def with_disk(**options)
    write "config.ru", APPLICATION
    SlowDisk.open do |disk|
      env = disk.env.merge(options.delete(:env)&.call(disk) || {})
      options[:args] = options[:args].call(disk) if options[:args]
      yield disk, start(env: env, **options)
    end
  end

  def post(body)
    "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}"
  end

  def check_bystanders(server, kept)
    assert_equal "/kept 0 0", kept.request("GET /kept HTTP/1.1\r\nHost: a\r\n\r\n").body
    5.times { assert_equal "/new 0 0", get(server, "/new").body }
  end

  def test_uploads_to_a_disk_that_does_not_answer
    with_disk(env: ->(disk) { { "TMPDIR" => disk.folder } }) do |disk, server|
      kept = RawClient.open(server.url)
      uploads = nil
      disk.hold do
        uploads = Array.new(3) do
          Thread.new { RawClient.open(server.url) { |client| client.request(post(UPLOAD), timeout: PATIENCE) } }
        end
        disk.wait_for("open")
        check_bystanders(server, kept)
      end
      uploads.each { |upload| assert_equal "/upload #{UPLOAD.bytesize} #{UPLOAD.sum}", upload.value.body }
      kept.close
      server.stop
    end
  end

  # When a large file without a name is closed, the file system has much to free.
  def test_files_that_are_closed_by_a_disk_that_does_not_answer
    with_disk(env: ->(disk) { { "TMPDIR" => disk.folder } }) do |disk, server|
      kept = RawClient.open(server.url)
      disk.hold("close") do
        assert_equal "200", kept.request(post(UPLOAD), timeout: PATIENCE).status.to_s
        disk.wait_for("close")
        check_bystanders(server, kept)
      end
      kept.close
      server.stop
    end
  end

  # The client leaves while a write hangs, and the server stops while another one does.
  def test_ends_meanwhile
    with_disk(env: ->(disk) { { "TMPDIR" => disk.folder } }) do |disk, server|
      kept = RawClient.open(server.url)
      disk.hold do
        left = RawClient.open(server.url)
        left.write(post(UPLOAD)[0, 300_000])
        disk.wait_for("open")
        left.reset
        check_bystanders(server, kept)
        RawClient.open(server.url) { |client| client.write(post(UPLOAD)[0, 300_000]) }
        check_bystanders(server, kept)
        kept.close
        server.stop
      end
    end
  end

  CALLER = <<~'RUBY'
    class Pilot
      def on_open(client) = client.write("hello\n")
    end
    run lambda { |env|
      Rondo.connect("unix://#{ENV.fetch("SLOW_DISK_FOLDER")}/peer.sock", handler: Pilot.new) if env["PATH_INFO"] == "/call"
      [200, { "content-type" => "text/plain" }, ["#{env["PATH_INFO"]} 0 0"]]
    }
  RUBY

  # The kernel looks up where the path of a Unix socket leads.
  def test_outgoing_connections_to_a_path_on_a_disk_that_does_not_answer
    write "config.ru", CALLER
    SlowDisk.open do |disk|
      server = start(env: disk.env)
      kept = RawClient.open(server.url)
      UNIXServer.open(File.join(disk.folder, "peer.sock")) do |peer|
        disk.hold("connect") do
          assert_equal "/call 0 0", get(server, "/call").body
          disk.wait_for("connect")
          check_bystanders(server, kept)
        end
        Timeout.timeout(PATIENCE) { peer.accept.tap { |client| assert_equal "hello\n", client.gets }.close }
      end
      kept.close
      server.stop
    end
  end

  # A folder with known and unknown paths.
  def with_folder(**options)
    write "config.ru", options.delete(:app) || APPLICATION
    SlowDisk.open do |disk|
      File.write(File.join(disk.folder, "known.txt"), "known")
      File.write(File.join(disk.folder, "cold.txt"), "cold")
      server = start(env: disk.env, args: ["-www", disk.folder], **options)
      assert_equal "known", get(server, "/known.txt").body
      yield disk, server
    end
  end

  def ask(path)
    "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n"
  end

  def test_files_that_are_opened_by_a_disk_that_does_not_answer
    with_folder do |disk, server|
      kept = RawClient.open(server.url)
      waiting = Array.new(3) { RawClient.open(server.url) }
      assert_equal "/kept 0 0", get(server, "/kept").body
      disk.hold do
        waiting.each { |client| client.write(ask("/cold.txt") + ask("/known.txt") + ask("/last")) }
        disk.wait_for("openat2")
        check_bystanders_of_folder(server, kept)
      end
      waiting.each do |client|
        assert_equal(["cold", "known", "/last 0 0"], Array.new(3) { client.response(timeout: PATIENCE).body })
        client.close
      end
      kept.close
      server.stop
    end
  end

  # If the kernel knows that a file does not exist, the application gets the request at once.
  def check_bystanders_of_folder(server, kept)
    assert_equal "/upload 3 294", kept.request(post("abc")).body
    assert_equal "/kept 0 0", kept.request(ask("/kept")).body
    assert_equal "/upload 3 294", RawClient.open(server.url) { |client| client.request(post("abc")).body }
  end

  def test_the_folder_while_ruby_is_stuck
    File.mkfifo(File.join(@folder, "gate"))
    with_folder(app: STUCK) do |disk, server|
      stuck = RawClient.open(server.url).write(ask("/stuck"))
      server.wait_for_log(/stuck began/)
      client = RawClient.open(server.url)
      disk.hold do
        client.write(ask("/cold.txt"))
        disk.wait_for("openat2")
      end
      assert_equal "cold", client.response(timeout: PATIENCE).body
      assert_equal "known", get(server, "/known.txt").body
      File.write(File.join(@folder, "gate"), "x")
      assert_equal 200, stuck.response(timeout: PATIENCE).status
      [stuck, client].each(&:close)
      server.stop
    end
  end

  # The files are still those of the folder at the start, and a client that leaves is forgotten.
  def test_ends_of_those_who_wait_for_a_file
    with_folder do |disk, server|
      disk.hold do
        RawClient.open(server.url) { |client| client.write(ask("/cold.txt")) && disk.wait_for("openat2") }
        waiting = RawClient.open(server.url).write(ask("/cold.txt"))
        check_bystanders_of_folder(server, RawClient.open(server.url))
        server.signal("INT")
        server.wait_for_log(/Gracefully|INT|[Ss]topp/)
        waiting.reset
        server.stop
      end
    end
  end

  # Files of the folder, and files that the application names by to_path.
  def test_files_that_are_sent_from_a_disk_that_does_not_answer
    write "config.ru", SENDER
    SlowDisk.open do |disk|
      large = File.join(disk.folder, "large.bin")
      File.binwrite(large, UPLOAD)
      server = start(env: disk.env.merge("LARGE" => large), args: ["-www", disk.folder])
      kept = RawClient.open(server.url)
      clients = nil
      disk.hold("pread", "sendfile") do
        clients = %w[/large.bin /sent].map { |path| RawClient.open(server.url).write(ask(path)) }
        disk.wait_for("pread")
        check_bystanders(server, kept)
      end
      clients.each do |client|
        assert_equal UPLOAD.sum, client.response(timeout: PATIENCE).body.sum
        client.close
      end
      kept.close
      server.stop
    end
  end
end
