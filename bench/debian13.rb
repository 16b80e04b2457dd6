# frozen_string_literal: true

# Ruby 3.3 for the peers that need it: in the Debian 13 that tools/try_debian13 makes. Commands run there with the
# project's tree as /mnt, in mounts of their own that end with them; processes, ports and the network are those of the
# machine. `ruby bench/debian13.rb` installs the gems and compiles Rondo there. Used by neverblock.rb and fibers.rb.
# SPDX-License-Identifier: MIT

require "fileutils"
require_relative "servers"

module Bench
  # The system, its gems, and Rondo for its Ruby.
  module Debian13
    HOME = "/var/tmp/rondo-debian13"
    TREE = "/mnt" # where the project's tree is, as seen from inside
    GEMS = [["rack", "~> 3.2.0"], ["async", ">= 2.24"], ["falcon", ">= 0.51.1"]].freeze
    ENTER = 'mount -t proc proc "$0/proc" && mount --bind "$1" "$0/mnt" && exec chroot "$0" "${@:2}"'
    BUILT = File.join(BUILD, "ruby-3.3")
    CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"

    module_function

    # @return [Boolean] whether it is installed and may be entered
    def there?
      Process.uid.zero? && File.exist?(File.join(HOME, ".rondo-complete"))
    end

    # @param words [Array<String>] a command inside
    # @return [Array<String>] the command that runs it, as the same process
    def command(*words)
      ["unshare", "--mount", "bash", "-c", ENTER, HOME, ROOT, *words]
    end

    # @param path [String] in the project's tree
    # @return [String] where it is inside
    def path(path)
      path.sub(/\A#{Regexp.escape(ROOT)}/, TREE)
    end

    # @return [Array<String>] Ruby inside, with Rondo's library as it was compiled for it
    def ruby(*words)
      command("ruby", "-I", path(File.join(BUILT, "lib")), "-I", path(File.join(ROOT, "lib")), *words)
    end

    # @return [Hash{String => String}]
    def environment
      gems = path(File.join(BUILT, "gems"))
      { "GEM_HOME" => gems, "GEM_PATH" => gems, "RACK_ENV" => "production", "HOME" => "/root", "LANG" => "C.UTF-8",
        "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil, "RUBYLIB" => nil,
        "PATH" => "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" }
    end

    # @param name [String] of a gem
    # @return [String, nil] the newest installed version; nil: the system or the gem is not there
    def version(name)
      return unless there?

      found = Dir.glob(File.join(BUILT, "gems", "gems", "#{name}-[0-9]*")).map { |path| path[/-([0-9.]*[0-9])\z/, 1] }
      found.compact.max_by { |version| Gem::Version.new(version) }
    end

    # @return [String, nil] what `ruby -v` says there, without the date
    def ruby_version
      return unless there?

      @ruby_version ||= IO.popen([environment, *command("ruby", "-v")], &:read)[/\Aruby \S+/]
    end

    # Compiles Rondo for its Ruby.
    #
    # @return [Boolean]
    def compile_rondo
      there? && system(environment, *command(path(File.join(ROOT, "tools", "compile")), path(File.join(BUILT, "lib"))))
    end

    # Installs the gems that are missing.
    #
    # @return [Array<String>] names of those that could not be installed
    def install
      return GEMS.map(&:first) unless there?

      FileUtils.mkdir_p(BUILT)
      FileUtils.cp(CERTIFICATES, BUILT) if File.exist?(CERTIFICATES)
      FileUtils.cp("/etc/resolv.conf", File.join(HOME, "etc"))
      GEMS.reject { |name,| version(name) }.reject { |entry| install_gem(*entry) }.map(&:first)
    end

    def install_gem(name, requirement)
      warn "bench: installing #{name} #{requirement} for Ruby 3.3"
      trust = { "SSL_CERT_FILE" => path(File.join(BUILT, File.basename(CERTIFICATES))) }
      system(environment.merge(trust), *command("gem", "install", "--no-document", "--quiet", name, "-v", requirement),
             out: :err)
    end
    private_class_method :install_gem
  end
end

if $PROGRAM_NAME == __FILE__
  abort "bench: #{Bench::Debian13::HOME} is not there: tools/try_debian13 makes it" unless Bench::Debian13.there?
  failed = Bench::Debian13.install
  failed << "rondo" unless Bench::Debian13.compile_rondo
  warn "bench: not installed: #{failed.join(", ")}" unless failed.empty?
end
