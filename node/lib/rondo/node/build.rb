# frozen_string_literal: true

# The JavaScript of an application: the one of an earlier start, or a new one. The check of an earlier build loads
# neither Opal nor Rack, because a start with nothing new should take no time.
# SPDX-License-Identifier: MIT

require "digest"
require "rondo/node/cache"
require "rondo/node/programs"

module Rondo
  module Node
    # One application's builds in the cache.
    class Build
      # What `node` starts.
      MAIN = "main.js"
      # Lines of digests and paths, as sha256sum writes them.
      MANIFEST = "sources.sha256"
      # It says one line on a Node that cannot read the rest.
      START = <<~JS.freeze
        // Starts the server of this folder on Node #{NODE_MAJOR} or newer.
        "use strict";
        if (parseInt(process.versions.node, 10) < #{NODE_MAJOR}) {
          console.error("rondo: Node.js #{NODE_MAJOR} or newer is needed, this is " + process.versions.node);
          process.exit(1);
        }
        process.setSourceMapsEnabled(true); // backtraces have lines of Ruby
        require("./server.js").start(__dirname + "/application.js");
      JS
      # What esbuild makes, and of what.
      BUNDLES = { "server.js" => "server.js", "redis.js" => "redis/client.js" }.freeze
      private_constant :BUNDLES, :MANIFEST, :START

      # @param rackup [String] path of config.ru
      # @param cache [Cache]
      # @param out [IO] for progress
      def initialize(rackup, cache: Cache.new, out: $stdout)
        @rackup = File.realpath(rackup)
        @cache = cache
        @out = out
      rescue Errno::ENOENT
        raise Error, "there is no #{rackup}"
      end

      # @return [String] path of the JavaScript that serves the application
      # @raise [Error]
      def call
        key = Digest::SHA256.hexdigest([@rackup, own_digest, RUBY_VERSION, *gem_times, *$LOAD_PATH].join("\0"))[0, 40]
        folder = @cache.path("builds", key)
        make(folder) unless current?(folder)
        File.join(folder, MAIN)
      end

      # @param target [String] a folder that gets the build
      # @param uws [String, nil] the uws.js that goes with it, and what it loads on this system
      # @return [String] path of the JavaScript in it
      # @raise [Error] the folder has other files in it
      def write(target, uws: nil)
        target = File.expand_path(target)
        names = File.directory?(target) ? Dir.children(target) : []
        unless names.empty? || names.include?(MAIN)
          raise Error, "#{target} has files in it that are not a build: name another folder"
        end

        require "fileutils"
        FileUtils.mkdir_p(File.dirname(target))
        source = File.dirname(call)
        @cache.replace(target) do |temporary|
          FileUtils.cp(Dir[File.join(source, "*.js*")], temporary)
          copy_uws(uws, File.join(temporary, "uws")) if uws
        end
        File.join(target, MAIN)
      rescue SystemCallError => e
        raise Error, "cannot write to #{target}: #{e.message}"
      end

      private

      # It has a library for each system, each processor and each version of Node.
      def copy_uws(file, folder)
        host = RbConfig::CONFIG
        system = host["host_os"][/\A[a-z]+/]
        processor = { "x86_64" => "x64", "aarch64" => "arm64" }.fetch(host["host_cpu"], host["host_cpu"])
        Dir.mkdir(folder)
        FileUtils.cp([file, *Dir[File.join(File.dirname(file), "uws_#{system}_#{processor}_*.node")]], folder)
      end

      # When gems were last installed: another version may be found now.
      def gem_times
        Gem.path.map { |folder| File.mtime(File.join(folder, "specifications")).to_f if File.directory?(folder) }
      rescue SystemCallError
        []
      end

      # This gem itself, in a clone too: whoever changes it wants to see the change.
      def own_digest
        @own_digest ||= begin
          files = Dir[File.join(ROOT, "lib/**/*.{rb,js,txt}"), Programs::LOCK].sort
          Digest::SHA256.hexdigest(files.map { |path| digest(path) }.join)
        end
      end

      def digest(path)
        Digest::SHA256.file(path).hexdigest
      end

      def current?(folder)
        lines = File.readlines(File.join(folder, MANIFEST), chomp: true)
        File.file?(File.join(folder, MAIN)) && lines.all? { |line| digest(line[66..]) == line[0, 64] }
      rescue SystemCallError
        false
      end

      def make(folder)
        began = now
        @out.puts "* Building #{@rackup} for Node"
        packages = Programs.packages(@cache)
        @cache.replace(folder) { |temporary| fill(temporary, packages) }
        %w[pieces engines].each { |name| @cache.prune(name) }
        @out.puts format("* Built in %<seconds>.1f s", seconds: now - began)
      end

      def fill(folder, packages)
        require "rondo/node/compiler"
        compiler = Compiler.new(@rackup, @cache)
        compiler.call { |count| show(count) }
        write_application(compiler, File.join(folder, "application.js"))
        File.write(File.join(folder, "application.js.map"), JSON.generate(compiler.source_map))
        bundle(folder, packages)
        File.write(File.join(folder, MANIFEST), compiler.files.map { |path| "#{digest(path)}  #{path}\n" }.join)
      end

      # Opal may write what no engine can read: then the file of that line is left out, or it is an error.
      def write_application(compiler, path)
        File.write(path, compiler.code)
        while (line, message = Programs.syntax_error(path))
          compiler.leave_out(line, message)
          File.write(path, compiler.code)
        end
      end

      # One file for the server and one for the application: a master needs no application. The client for Redis is
      # loaded only by a process that uses it. All applications have the same server.
      def bundle(folder, packages)
        File.write(File.join(folder, MAIN), START)
        BUNDLES.each do |file, source|
          target = File.join(folder, file)
          name = "engines/#{own_digest[0, 40]}-#{file}"
          kept = @cache.get(name)
          next File.binwrite(target, kept) if kept

          bundle_file(source, target, packages)
          @cache.put(name, File.binread(target))
        end
      end

      def bundle_file(source, target, packages)
        Programs.esbuild(packages, File.join(ROOT, "lib/rondo/node/engine", source), "--bundle", "--platform=node",
                         "--target=node#{NODE_MAJOR}", "--log-level=error", "--legal-comments=none",
                         "--outfile=#{target}")
      end

      def show(count)
        return unless @out.tty? && now - (@shown || 0) > 0.2

        @shown = now
        @out.print "  #{count} files\r"
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
