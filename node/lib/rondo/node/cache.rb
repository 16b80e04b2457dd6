# frozen_string_literal: true

# The folder where builds and compiled files are kept. Everything is written under another name first and then
# renamed, so nobody ever reads a half of it.
# SPDX-License-Identifier: MIT

require "digest"
require "rondo/node"

module Rondo
  module Node
    # A folder of the user, by default ~/.cache/rondo-node.
    class Cache
      # Seconds.
      KEPT = 30 * 24 * 3600
      private_constant :KEPT

      # @return [String] absolute path
      attr_reader :root

      # @return [String] RONDO_NODE_CACHE, or the place that the XDG rules name
      def self.default
        ENV.fetch("RONDO_NODE_CACHE") do
          File.join(ENV.fetch("XDG_CACHE_HOME") { File.join(Dir.home, ".cache") }, "rondo-node")
        end
      rescue ArgumentError # no home
        raise Error, "there is no home folder for the cache: set RONDO_NODE_CACHE"
      end

      # @param root [String]
      def initialize(root = self.class.default)
        @root = File.expand_path(root)
      end

      # @return [String] path in this cache
      def path(*names)
        File.join(@root, *names)
      end

      # @param name [String] relative path
      # @return [String, nil] the bytes that `put` wrote
      def get(name)
        File.binread(path(name)).tap { File.utime(nil, nil, path(name)) }
      rescue SystemCallError
        nil
      end

      # @param name [String] relative path
      # @param bytes [String]
      # @raise [Error] the cache cannot be written
      def put(name, bytes)
        guard do
          target = path(name)
          make(File.dirname(target))
          temporary = "#{target}.#{Process.pid}"
          File.binwrite(temporary, bytes)
          File.rename(temporary, target)
        ensure
          File.unlink(temporary) if temporary && File.exist?(temporary)
        end
      end

      # Removes files that no build has used for a month.
      # @param name [String] relative path of a folder
      def prune(name)
        oldest = Time.now - KEPT
        Dir[path(name, "*")].each { |file| File.unlink(file) if File.mtime(file) < oldest }
      rescue SystemCallError
        nil # another build does it, too
      end

      # Yields a new folder. When the block returns, the folder takes the place of `target`; when it raises, the folder
      # is removed and `target` stays as it was.
      # @param target [String] absolute path
      # @raise [Error] it cannot be written
      def replace(target)
        guard(target) do
          sweep(File.dirname(target))
          temporary = "#{target}.#{Process.pid}.new"
          make(temporary)
          yield temporary
          exchange(temporary, target)
        ensure
          remove(temporary)
        end
      end

      private

      def make(folder)
        return if File.directory?(folder)

        require "fileutils"
        FileUtils.mkdir_p(folder)
      end

      def remove(folder)
        return unless folder && File.exist?(folder)

        require "fileutils"
        FileUtils.rm_rf(folder)
      end

      # A folder cannot be renamed onto one with files in it.
      def exchange(temporary, target)
        old = "#{target}.#{Process.pid}.old"
        File.rename(target, old) if File.exist?(target)
        File.rename(temporary, target)
      rescue Errno::ENOTEMPTY, Errno::EEXIST
        raise unless File.directory?(target) # another build of the same was faster
      ensure
        remove(old)
      end

      # Folders of builds that were killed.
      def sweep(folder)
        Dir[File.join(folder, "*.new"), File.join(folder, "*.old")].each do |left|
          pid = left[/\.(\d+)\.(?:new|old)\z/, 1]
          remove(left) if pid && !File.exist?("/proc/#{pid}")
        end
      end

      def guard(target = @root)
        yield
      rescue Errno::ENOSPC, Errno::EDQUOT
        raise Error, "the disk of #{target} is full"
      rescue Errno::EACCES, Errno::EROFS, Errno::EPERM, Errno::ENOTDIR, Errno::EEXIST => e
        raise Error, "cannot write to #{target} (#{e.message[/\A[^@(]*/].strip}): " \
                     "RONDO_NODE_CACHE names another folder for the cache"
      end
    end
  end
end
