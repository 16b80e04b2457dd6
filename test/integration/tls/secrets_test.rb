# frozen_string_literal: true

# No byte of a key is where other processes and people look: the log, environments, command lines, what Ruby shows.
# SPDX-License-Identifier: MIT

require_relative "tls_case"
require "rondo/config/tls"

class TLSSecretsTest < TLSCase
  # The command is a program.
  class Begun < ShellCase::Server
    private

    def command_line(path, *)
      [RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", path]
    end
  end

  def lines_of_key
    File.readlines(@pair.key, chomp: true).reject { |line| line.include?("-----") }
  end

  def children(pid)
    own = File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i)
    own + own.flat_map { |child| children(child) }
  end

  def assert_no_key(text, where)
    lines_of_key.each { |line| refute_includes text.b, line, where }
  end

  def test_processes_of_a_cluster
    write "config/rondo.rb", <<~RUBY
      workers 2
      clear_binds!
      ssl_bind "127.0.0.1", 0, cert_pem: File.read(#{@pair.certificate.inspect}), key_pem: File.read(#{@pair.key.inspect})
    RUBY
    server = start(binds: [], deadline: PATIENCE)
    server.wait_for_log(/(booted in.*){2}/m)
    [server.pid, *children(server.pid)].each do |pid|
      %w[environ cmdline].each { |name| assert_no_key File.binread("/proc/#{pid}/#{name}"), "#{name} of #{pid}" }
    end
    assert_no_key server.log, "log"
  end

  # It is read anew after a restart, before the server looks at what it has got from itself.
  def test_programs_of_the_configuration_file
    write "config/rondo.rb", 'File.write("seen", `ls -l /proc/self/fd`, mode: "a")'
    server = secure
    from = server.log.bytesize
    server.signal("USR2")
    server.wait_for_log(/^\* Listening on/, from: from)
    seen = File.read(File.join(@folder, "seen"))
    assert_equal 2, seen.scan(/^total/).size
    refute_includes seen, "memfd:rondo"
  end

  # A program runs its own code before it begins the server, in one process and in a mold.
  def test_children_of_a_program
    lines = 'require "rondo"; File.write("seen", `ls -l /proc/self/fd`, mode: "a")'
    path = write("program.rb", "#{lines}\nRondo.start(->(_) { [200, {}, []] }, bind: 'ssl://127.0.0.1:0?#{@pair.query}')\n")
    server = Begun.new(path, env: BLANK, spawn: { chdir: @folder }).tap { |each| @servers << each }
    [0, 1].each do |workers|
      File.write(path, File.read(path).sub(/(, workers: \d)?\)\Z/, ", workers: #{workers})"))
      from = server.log.bytesize
      server.signal("USR2")
      server.wait_for_log(/- Restarting.*#{workers.zero? ? "Use Ctrl-C" : "booted in"}/m, from: from)
    end
    from = server.log.bytesize
    server.signal("USR1")
    server.wait_for_log(/booted in/, from: from)
    seen = File.read(File.join(@folder, "seen"))
    assert_equal 4, seen.scan(/^total/).size
    refute_match(/memfd:rondo|socket:/, seen)
  end

  def test_a_pair_that_is_refused
    other = @certificates.pair("other")
    result = run_command(*RONDO, "-b", "ssl://127.0.0.1:0?cert=#{other.certificate}&key=#{@pair.key}")
    refute_equal 0, result.code
    assert_no_key result.out + result.err, "messages"
  end

  def test_what_ruby_shows
    material = Rondo::TLS::Material.new.update(certificates: [{ key: File.read(@pair.key) }])
    assert_no_key "#{material.inspect} #{material} #{[material].inspect}", "inspect"
  end
end
