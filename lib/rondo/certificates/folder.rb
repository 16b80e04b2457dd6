# frozen_string_literal: true

# A folder with keys: for its owner alone, each file is written as a whole, and one process at a time changes it.
# SPDX-License-Identifier: MIT

require "fileutils"
require "securerandom"
require "rondo"

module Rondo
  # Certificates that the server makes or fetches by itself.
  # @api private
  module Certificates
    # They cannot be made, read or kept: a message of one line.
    class Failed < Error; end

    # Reads and writes the files of such a folder.
    class Folder
      # Largest file that is read.
      LONGEST = 1 << 20
      LOCK = "lock"

      # Where this user's programs keep what they need again.
      # @param name [String] of a folder there
      # @param env [Hash{String => String}]
      # @return [String] a path
      # @raise [Failed]
      def self.place(name, env = ENV)
        File.join(base(env, "XDG_STATE_HOME", ".local/state"), "rondo", name)
      rescue ArgumentError
        raise Failed, "there is no home folder for certificates: set XDG_STATE_HOME"
      end

      # A folder of the XDG specification, which has relative paths ignored.
      # @param env [Hash{String => String}]
      # @param variable [String] its name there
      # @param fallback [String] below the home folder
      # @return [String] a path
      # @raise [ArgumentError] when there is neither the variable nor a home folder
      def self.base(env, variable, fallback)
        path = env[variable].to_s
        path.start_with?("/") ? path : File.join(Dir.home, fallback)
      end

      # @return [String]
      attr_reader :path

      # @param path [String] need not exist
      def initialize(path)
        @path = File.expand_path(path)
      end

      # @param name [String]
      # @return [String] path of a file in it
      def at(name)
        File.join(@path, name)
      end

      # @param name [String]
      # @return [String, nil] its bytes; nil: there is no such file
      # @raise [Failed]
      def read(name)
        File.binread(at(name), LONGEST)
      rescue Errno::ENOENT
        nil
      rescue SystemCallError => e
        fail_with("cannot read", at(name), e)
      end

      # Other processes see the whole file or the one before. It survives a crash of the machine.
      # @param name [String]
      # @param bytes [String]
      # @param mode [Integer]
      # @return [String] its path
      # @raise [Failed]
      def write(name, bytes, mode: 0o600)
        path = at(name)
        make(File.dirname(path))
        write_whole(path, bytes, mode)
        path
      rescue SystemCallError => e
        fail_with("cannot write", path, e)
      end

      # @param name [String]
      # @return [void]
      def remove(name)
        File.unlink(at(name))
      rescue Errno::ENOENT
        nil
      rescue SystemCallError => e
        fail_with("cannot remove", at(name), e)
      end

      # Waits until no other process changes the folder.
      # @param wait [Boolean]
      # @yield
      # @return [Object] what the block returns; :busy without a wait, if another process is there
      # @raise [Failed]
      def locked(wait: true)
        lock = open_lock
        return :busy unless lock.flock(wait ? File::LOCK_EX : File::LOCK_EX | File::LOCK_NB)

        yield
      ensure
        lock&.close
      end

      # Makes it, or a folder in it; nobody else may change any of them. Folders above it are as the umask wants them.
      # @param path [String]
      # @return [void]
      # @raise [Failed]
      def make(path = @path)
        path == @path ? FileUtils.mkdir_p(File.dirname(path)) : make(File.dirname(path))
        make_one(path) unless File.directory?(path)
        check(path)
      rescue Errno::EEXIST
        check(path) if File.directory?(path) # by another process
      rescue SystemCallError => e
        fail_with("cannot make", path, e)
      end

      private

      def make_one(path)
        Dir.mkdir(path, 0o700)
        File.open(path, File::NOFOLLOW | File::NONBLOCK) { |made| give(made) if made.stat.directory? }
      end

      # What root makes here belongs to the owner of the folder: `sudo rondo cert renew` must not lock out a server.
      # @param file [File] that was just made: what was there before may be a link to what the owner must not have
      def give(file)
        return unless Process.euid.zero?

        found = File.stat(@path)
        file.chown(found.uid, found.gid)
      end

      def open_lock
        make(@path)
        make_lock
        File.open(at(LOCK), File::RDWR)
      rescue SystemCallError => e
        fail_with("cannot lock", at(LOCK), e)
      end

      def make_lock
        File.open(at(LOCK), File::RDWR | File::CREAT | File::EXCL, 0o600) { |lock| give(lock) }
      rescue Errno::EEXIST
        nil
      end

      # Whatever ends this, no half of a key stays behind. In a container every start has the same process number.
      def write_whole(path, bytes, mode)
        temporary = "#{path}.#{SecureRandom.hex(8)}.new"
        File.open(temporary, File::WRONLY | File::CREAT | File::EXCL | File::NOFOLLOW, mode) do |file|
          file.chmod(mode) # whatever the umask is
          give(file)
          file.write(bytes)
          file.fsync
        end
        File.rename(temporary, path)
        File.open(File.dirname(path), &:fsync) # or a crash of the machine takes the new name back
      ensure
        FileUtils.rm_f(temporary)
      end

      # Somebody else could put an authority there, and its owner would trust that.
      def check(path)
        found = File.stat(path)
        is_ours = Process.euid.zero? || [0, Process.euid].include?(found.uid)
        return if is_ours && !found.world_writable?

        raise Failed, "#{path} can be changed by others"
      end

      def fail_with(what, path, error)
        raise Failed, "#{what} #{path}: #{SystemCallError.new(nil, error.errno).message}"
      end
    end
  end
end
