# frozen_string_literal: true

# The files that a server with a static folder opens, as the kernel sees them: strace records every open(2) and related
# calls, while clients ask for files that they must not get. The same again without openat2.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "support/raw_client"

class FilesTraceTest < ShellCase
  CALLS = "open,openat,openat2,creat,write"
  # Files that the server's process opens in any case: to name its threads, to measure its memory.
  OF_RUBY = [%r{"/proc/self/task/\d+/comm"}, %r{"/proc/\d+/statm"}].freeze
  SECRET = "the secret of the machine"

  HOSTILE = %w[
    /../secret.txt /a/../../secret.txt /a/../note.txt /./note.txt //note.txt //secret.txt /a//note.txt ///etc/passwd
    /..%2fsecret.txt /%2e%2e/secret.txt /%2e%2e%2fsecret.txt /.%2e/secret.txt /%2E%2E/secret.txt /a/%2e%2e/%2e%2e/secret.txt
    /%252e%252e/secret.txt /%252e%252e%252fsecret.txt /%25%32%65%25%32%65/secret.txt /..%252fsecret.txt /%u002e%u002e/secret.txt
    /..%5csecret.txt /..\\secret.txt /%5c..%5csecret.txt /a\\..\\..\\secret.txt /c:/secret.txt
    /..%c0%afsecret.txt /%c0%ae%c0%ae/secret.txt /%e0%80%ae%e0%80%ae/secret.txt /..%ef%bc%8fsecret.txt /%uff0e%uff0e/secret.txt
    /secret.txt%00 /note.txt%00.html /%00/../secret.txt /..;/secret.txt /..;a=b/secret.txt /a;/../../secret.txt
    /..././secret.txt /....//secret.txt /%2f/etc/passwd /%2fetc%2fpasswd /etc/passwd /%2e /%2e%2e /.. /. /..%2f..%2f..%2fetc%2fpasswd
    /.hidden /.git/config /a/.hidden /.well-known/../.hidden /.well-known/../../secret.txt /%2ehidden
    /leaves.txt /leaves/secret.txt /absolute.txt /root/etc/passwd /self/environ /a/up/secret.txt /pipe /socket /a
    /dev/null /proc/self/environ http://127.0.0.1/../secret.txt http://127.0.0.1/..%2fsecret.txt /~root/secret.txt
    /note.txt/../../secret.txt /note.txt/ /leaves.txt/ /%ff%fe/../secret.txt /..%0asecret.txt /..%20/secret.txt
  ].freeze

  # The process is the server's own; strace runs beside it.
  class Traced < ShellCase::Server
    def initialize(trace, inject, **options)
      @tracer = ["strace", "-D", "-f", "-y", "-s", "4096", "-e", "trace=#{CALLS}", *inject, "-o", trace]
      super(nil, **options)
    end

    private

    def command_line(*)
      [*@tracer, *super]
    end
  end

  def setup
    super
    @root = File.join(@folder, "site")
    write "secret.txt", SECRET
    write "site/note.txt", "note"
    write "site/a/note.txt", "note"
    %w[.hidden .git/config a/.hidden].each { |name| write "site/#{name}", SECRET }
    link "inside.txt", "a/note.txt"
    { "leaves.txt" => "../secret.txt", "leaves" => "..", "absolute.txt" => "#{@folder}/secret.txt", "root" => "/",
      "self" => "/proc/self", "a/up" => "../.." }.each { |name, target| link(name, target) }
    File.mkfifo(File.join(@root, "pipe"))
    @socket = UNIXServer.new(File.join(@root, "socket"))
  end

  def teardown
    super
    @socket.close
  end

  def link(name, target)
    File.symlink(target, File.join(@root, name))
  end

  def test_nothing_outside_the_folder_is_opened
    opened = served_and_traced
    asked = opened.grep(/\A\d+ +openat2\(/)
    assert_operator asked.size, :>, 20, opened.join
    asked.each { |line| assert_match(/resolve=RESOLVE_NO_MAGICLINKS\|RESOLVE_BENEATH/, line) }
  end

  # Sandboxes of containers and kernels before 5.6.
  def test_nothing_is_opened_without_openat2_either
    opened = served_and_traced("-e", "inject=openat2:error=ENOSYS", links: false)
    opened.grep_v(/ openat2\(/).each { |line| assert_match(/O_NOFOLLOW/, line) }
  end

  private

  # @return [Array<String>] the lines of the trace about the folder
  def served_and_traced(*inject, links: true)
    server = traced(*inject)
    RawClient.open(server.url) do |client|
      assert_equal "note", client.request(get_request("/note.txt")).body
      assert_equal links ? "note" : "application", client.request(get_request("/inside.txt")).body
    end
    HOSTILE.each { |path| refute_secret(server, path) }
    server.stop
    of_folder(File.readlines(@trace))
  end

  def traced(*inject)
    skip "strace is missing" unless system("strace", "-V", out: File::NULL, err: File::NULL)
    skip "the right to trace (ptrace) is missing" unless system("strace", "-o", File::NULL, "true", err: File::NULL)
    @trace = File.join(@folder, "trace")
    write "config.ru", "run ->(env) { [200, { 'content-type' => 'text/plain' }, ['application']] }\n"
    server = Traced.new(@trace, inject, binds: ["tcp://127.0.0.1:0"], args: ["-www", "site"],
                                        env: BLANK, spawn: { chdir: @folder })
    @servers << server
    server.wait_for_log(/Use Ctrl-C/)
    server
  end

  def get_request(path)
    "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n"
  end

  def refute_secret(server, path)
    RawClient.open(server.url) do |client|
      response = client.request(get_request(path))
      assert_includes [200, 400], response.status, path
      assert_equal "application", response.body, path if response.status == 200 # of nothing in the folder
    end
  end

  # The files opened since the server listens: below the folder, or known to belong to Ruby.
  def of_folder(lines)
    begin_at = lines.index { |line| line.include?("Use Ctrl-C to stop") } or flunk lines.last(20).join
    end_at = lines.rindex { |line| line.match?(/write\(.*Goodbye/) } || lines.size
    lines = joined(lines[begin_at...end_at]).grep(/ (?:open|openat|openat2|creat)\(/)
    lines = lines.reject { |line| OF_RUBY.any? { |pattern| line.match?(pattern) } }
    lines.each { |line| assert_beneath(line) }
  end

  # A call that another thread interrupted takes two lines.
  def joined(lines)
    begun = {}
    lines.filter_map do |line|
      pid = line[/\A\d+/]
      if line.include?(" <unfinished ...>")
        begun[pid] = line.chomp.delete_suffix(" <unfinished ...>")
        nil
      elsif line.include?(" resumed>")
        "#{begun.delete(pid)}#{line[/ resumed>(.*)/m, 1]}"
      else
        line
      end
    end
  end

  def assert_beneath(line)
    from, name = line.match(/ openat2?\(\d+<([^>]*)>, "((?:[^"\\]|\\.)*)"/)&.captures
    assert from, line
    assert_includes "#{from}/", "#{@root}/", line
    refute_match(%r{\A/|(?:\A|/)\.\.(?:/|\z)|(?:\A|/)\.(?!well-known)[^/]}, name, line)
    reached = line[/ = \d+<([^>]*)>/, 1] or return
    assert_match(%r{\A#{@root}(?:/|\z)}, reached, line)
  end
end
