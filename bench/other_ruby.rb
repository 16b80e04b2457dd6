# frozen_string_literal: true

# Rondo on another Ruby beside Rondo on this one. OtherRuby is that of another Debian, made by tools/in_ruby, and built
# without YJIT; ChosenRuby is a program of this machine, with YJIT where it has it. In the other Debian the server runs
# with the project's tree as /mnt, in mounts of its own that end with it; processes, ports and the network are those of
# the machine. Used by run.rb --ruby.
# SPDX-License-Identifier: MIT

require_relative "debian13"
require_relative "servers"

module Bench
  # What both have: `command` and `inside` say how a program is started there, and where a path of this tree is.
  class RubyBeside
    CLEAN = %w[RUBYOPT BUNDLER_SETUP BUNDLE_GEMFILE RUBYLIB GEM_HOME GEM_PATH].to_h { |name| [name, nil] }
                                                                              .merge("RACK_ENV" => "production").freeze
    private_constant :CLEAN

    # @return [String] as in 3.4
    attr_reader :version

    # @param version [String] of Ruby
    # @param ruby [String] its program
    # @param built [String] the name of the folder for what is compiled
    def initialize(version, ruby, built)
      @version = version
      @ruby = ruby
      @built = File.join(BUILD, built)
    end

    # @return [Server]
    def server
      Servers.rondo.dup.tap do |server|
        server.name, server.title = "rondo-#{version}", title
        server.command = method(:serve).to_proc
        server.apps, server.answers, server.secure = Servers::RACK, nil, nil
        server.environment = environment
      end
    end

    private

    def title
      "Rondo, Ruby #{version}"
    end

    def compile
      system(environment, *command(inside(File.join(ROOT, "tools", "compile")), inside(File.join(@built, "lib"))))
    end

    def serve(port, app, _folder, threads)
      command(@ruby, "-I", inside(File.join(@built, "lib")), "-I", inside(File.join(ROOT, "lib")),
              inside(File.join(ROOT, "exe", "rondo")), "-t", threads.to_s, "-b", "tcp://127.0.0.1:#{port}", "-q",
              inside(app))
    end
  end

  # A system with another Ruby, and Rondo compiled for it.
  class OtherRuby < RubyBeside
    # @param version [String] of two numbers
    def initialize(version)
      super(version, "ruby", "ruby-#{version}-suites")
      @home = File.join(ENV.fetch("RONDO_SYSTEMS", "/var/tmp"), "rondo-ruby#{version}")
    end

    # Makes what is missing: the system, its gems, Rondo.
    #
    # @return [Boolean]
    def prepare
      system(File.join(ROOT, "tools", "in_ruby"), version, "bin/setup", "--gems", "--quiet", out: :err) && compile
    end

    private

    # The command as the same process, so that its CPU time is counted.
    def command(*words)
      ["unshare", "--mount", "bash", "-c", Debian13::ENTER, @home, ROOT, *words]
    end

    def inside(path)
      Debian13.path(path)
    end

    def environment
      CLEAN.merge("HOME" => "/root", "LANG" => "C.UTF-8", "PATH" => "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    end
  end

  # A Ruby of this machine, as rbenv and others install it, and Rondo compiled for it.
  class ChosenRuby < RubyBeside
    # @param program [String] path of its executable
    def initialize(program)
      program = File.expand_path(program)
      @folder = File.dirname(program)
      version, yjit = ask(program, "print RUBY_VERSION, ' ', !defined?(RubyVM::YJIT).nil?").split
      @yjit = yjit == "true"
      super(version, program, "ruby-#{version}-chosen")
    end

    # Installs the gem rack for it, and compiles Rondo.
    #
    # @return [Boolean]
    def prepare
      gem = [@ruby, "-S", "gem", "install", "--conservative", "--no-document", "rack"]
      system(environment, *gem, out: :err) && compile
    end

    private

    def title
      "#{super}#{" with YJIT" if @yjit}"
    end

    def ask(program, script)
      IO.popen([environment, program, "-e", script], &:read)
    rescue SystemCallError => e
      abort "bench: #{program}: #{e.message}"
    end

    def command(*words)
      words
    end

    def inside(path)
      path
    end

    def environment
      CLEAN.merge("RUBY_YJIT_ENABLE" => "1", "PATH" => "#{@folder}:#{ENV.fetch("PATH")}")
    end
  end
end
