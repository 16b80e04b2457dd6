# frozen_string_literal: true

# For `rondo check`: finds out whether a file of a start can be written. Used by process_files.rb and
# process_setup.rb.
# SPDX-License-Identifier: MIT

module Rondo
  # Tries it and leaves no trace: a file that exists keeps its content, a new one is removed.
  # @api private
  module WriteTrial
    # @param path [String]
    # @param folders [Boolean] whether the start would make the folders as well
    # @return [String] the path
    # @raise [ConfigurationError] one line
    def self.call(path, folders: false)
      made = folders ? make_folders(File.dirname(File.expand_path(path))) : []
      try(path) unless File.pipe?(path) # which would wait for a reader
      path
    rescue SystemCallError => e
      raise ConfigurationError, "cannot write #{path}: #{SystemCallError.new(nil, e.errno).message}"
    ensure
      remove(made) if made
    end

    # @return [Array<String>] those that were not there, the deepest first
    def self.make_folders(folder)
      missing = []
      until File.exist?(folder)
        missing << folder
        folder = File.dirname(folder)
      end
      missing.reverse_each { |path| Dir.mkdir(path) }
      missing
    end
    private_class_method :make_folders

    def self.remove(folders)
      folders.each { |folder| Dir.rmdir(folder) }
    rescue SystemCallError
      nil # another process uses it already
    end
    private_class_method :remove

    def self.try(path)
      File.open(path, File::WRONLY | File::CREAT | File::EXCL) { File.delete(path) }
    rescue Errno::EEXIST
      File.open(path, File::WRONLY, &:itself)
    end
    private_class_method :try
  end
end
