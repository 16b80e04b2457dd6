# frozen_string_literal: true

# Rondo on another Ruby beside Rondo on this one. OtherRuby is that of another Debian, made by tools/in_ruby, and built
# without YJIT; ChosenRuby is a program of this machine, with YJIT where it has it. In the other Debian the server runs
# with the project's tree as /mnt, in mounts of its own that end with it; processes, ports and the network are those of
# the machine. Used by run.rb --ruby.
# SPDX-License-Identifier: MIT

require_relative "debian13"
require_relative "servers"

module Bench
  # A system with another Ruby, and Rondo compiled for it.
  class OtherRuby
    # @return [String] as in 3.4
    attr_reader :version

    # @param version [String] of Ruby, of two numbers
    def initialize(version)
      @version = version
      @home = File.join(ENV.fetch("RONDO_SYSTEMS", "/var/tmp"), "rondo-ruby#{version}")
      @built = File.join(BUILD, "ruby-#{version}-suites")
    end

    # Makes what is missing: the system, its gems, Rondo.
    #
    # @return [Boolean]
    def prepare
      system(File.join(ROOT, "tools", "in_ruby"), version, "bin/setup", "--gems", "--quiet", out: :err) &&
        system(environment, *command(inside(File.join(ROOT, "tools", "compile")), inside(File.join(@built, "lib"))))
    end

    # @return [Server]
    def server
      Servers.rondo.dup.tap do |server|
        server.name, server.title = "rondo-#{version}", "Rondo, Ruby #{version}"
        server.command = method(:serve).to_proc
        server.apps, server.answers, server.secure = Servers::RACK, nil, nil
        server.environment = environment
      end
    end

    private

    def serve(port, app, _folder, threads)
      command("ruby", "-I", inside(File.join(@built, "lib")), "-I", inside(File.join(ROOT, "lib")),
              inside(File.join(ROOT, "exe", "rondo")), "-t", threads.to_s, "-b", "tcp://127.0.0.1:#{port}", "-q",
              inside(app))
    end

    # The command as the same process, so that its CPU time is counted.
    def command(*words)
      ["unshare", "--mount", "bash", "-c", Debian13::ENTER, @home, ROOT, *words]
    end

    def inside(path)
      Debian13.path(path)
    end

    def environment
      { "RACK_ENV" => "production", "HOME" => "/root", "LANG" => "C.UTF-8",
        "PATH" => "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "RUBYOPT" => nil, "BUNDLER_SETUP" => nil, "BUNDLE_GEMFILE" => nil, "RUBYLIB" => nil, "GEM_HOME" => nil,
        "GEM_PATH" => nil }
    end
  end

  # A Ruby of this machine, as rbenv and others install it, and Rondo compiled for it.
  class ChosenRuby
    # @return [String] as in 3.4.5
    attr_reader :version

    # @param program [String] path of its executable
    def initialize(program)
      @program = File.expand_path(program)
      @version, yjit = ask("print RUBY_VERSION, ' ', !defined?(RubyVM::YJIT).nil?").split
      @yjit = yjit == "true"
      @built = File.join(BUILD, "ruby-#{version}-chosen")
    end

    # Installs the gem rack for it, and compiles Rondo.
    #
    # @return [Boolean]
    def prepare
      gem = [@program, "-S", "gem", "install", "--conservative", "--no-document", "rack"]
      system(environment, *gem, out: :err) &&
        system(environment, File.join(ROOT, "tools", "compile"), File.join(@built, "lib"))
    end

    # @return [Server]
    def server
      Servers.rondo.dup.tap do |server|
        server.name, server.title = "rondo-#{version}", "Rondo, Ruby #{version}#{" with YJIT" if @yjit}"
        server.command = method(:serve).to_proc
        server.apps, server.answers, server.secure = Servers::RACK, nil, nil
        server.environment = environment
      end
    end

    private

    def ask(script)
      IO.popen([environment, @program, "-e", script], &:read)
    rescue SystemCallError => e
      abort "bench: #{@program}: #{e.message}"
    end

    def serve(port, app, _folder, threads)
      [@program, "-I", File.join(@built, "lib"), "-I", File.join(ROOT, "lib"), File.join(ROOT, "exe", "rondo"),
       "-t", threads.to_s, "-b", "tcp://127.0.0.1:#{port}", "-q", app]
    end

    def environment
      { "RACK_ENV" => "production", "RUBY_YJIT_ENABLE" => "1",
        "PATH" => "#{File.dirname(@program)}:#{ENV.fetch("PATH")}", "RUBYOPT" => nil, "BUNDLER_SETUP" => nil,
        "BUNDLE_GEMFILE" => nil, "RUBYLIB" => nil, "GEM_HOME" => nil, "GEM_PATH" => nil }
    end
  end
end
