# frozen_string_literal: true

# How the programs of this machine learn to trust our own authority: the system's store, and the databases of
# browsers that have their own. What this user may not do is printed as commands.
# SPDX-License-Identifier: MIT

require "fileutils"
require "shellwords"
require "rondo"

module Rondo
  module Certificates
    # Installs a certificate of an authority, or says how.
    class Trust
      # A store of a system: folder for certificates, and the command that reads them.
      Store = Struct.new(:folder, :command)
      STORES = [Store.new("/usr/local/share/ca-certificates", %w[update-ca-certificates]),
                Store.new("/etc/pki/ca-trust/source/anchors", %w[update-ca-trust extract]),
                Store.new("/etc/ca-certificates/trust-source/anchors", %w[trust extract-compat])].freeze
      FILE = "rondo-development.crt"
      # Of Chromium, and of Firefox.
      DATABASES = [".pki/nssdb", ".mozilla/firefox/*", "snap/firefox/common/.mozilla/firefox/*",
                   ".var/app/org.mozilla.firefox/.mozilla/firefox/*"].freeze
      NICKNAME = "Rondo development authority"

      # @param certificate [String] path
      # @param out [IO]
      # @param root [String] of the system's folders
      # @param home [String]
      # @param platform [String]
      def initialize(certificate, out:, root: "/", home: Dir.home, platform: RUBY_PLATFORM)
        @certificate = certificate
        @out = out
        @root = root
        @home = home
        @platform = platform
      end

      # @param print [Boolean] only say what there is to do
      # @return [void]
      def run(print: false)
        @print = print
        @left = []
        @platform.include?("darwin") ? keychain : system_store
        databases
        @out.puts "Still to do:", *@left.map { |words| "  #{words}" } if @left.any?
      end

      private

      def keychain
        keychain = File.join(@home, "Library/Keychains/login.keychain-db")
        @left << ["security", "add-trusted-cert", "-r", "trustRoot", "-k", keychain, @certificate].shelljoin
      end

      # ---- the system ----

      def system_store
        store = STORES.find { |each| File.directory?(File.join(@root, each.folder)) }
        return @left << "add #{@certificate} to the authorities of this system" unless store

        target = File.join(@root, store.folder, FILE)
        return leave(store, target) unless !@print && File.writable?(File.dirname(target)) && copied?(target, store)

        @out.puts "The system trusts it now: #{target}"
      end

      def copied?(target, store)
        FileUtils.cp(@certificate, target)
        File.chmod(0o644, target)
        ran?(*store.command)
      rescue SystemCallError
        false
      end

      def leave(store, target)
        @left << "sudo cp #{@certificate.shellescape} #{target.shellescape}" << "sudo #{store.command.join(" ")}"
      end

      # ---- browsers ----

      def databases
        folders = DATABASES.flat_map { |pattern| Dir.glob(File.join(@home, pattern)) }
                           .select { |path| File.file?(File.join(path, "cert9.db")) }
        folders = [make_database].compact if folders.empty? && certutil? && !@print
        folders.each { |path| database(path) }
        @left << "certutil is missing; browsers need it: apt-get install libnss3-tools" if folders.any? && !certutil?
      end

      # Chromium reads it if it is there at its start.
      def make_database
        path = File.join(@home, ".pki/nssdb")
        FileUtils.mkdir_p(path, mode: 0o700)
        path if ran?("certutil", "-d", "sql:#{path}", "-N", "--empty-password")
      rescue SystemCallError
        nil
      end

      def database(path)
        words = ["certutil", "-d", "sql:#{path}", "-A", "-t", "C,,", "-n", NICKNAME, "-i", @certificate]
        # The one of that name from before would stay.
        ran?("certutil", "-d", "sql:#{path}", "-D", "-n", NICKNAME) unless @print
        return @out.puts "Browsers with #{path} trust it now" if !@print && ran?(*words)

        @left << words.shelljoin
      end

      def certutil?
        return @certutil if defined?(@certutil)

        @certutil = !system("certutil", "-H", in: File::NULL, out: File::NULL, err: File::NULL).nil?
      end

      def ran?(*words)
        system(*words, in: File::NULL, out: File::NULL, err: File::NULL) ? true : false
      end
    end
  end
end
