# frozen_string_literal: true

# The Ruby side of the folder of `public` and `-www`: whether it is one, and its page for errors. Its files
# are served by the core (ext/rondo/server/files.c), which opens it in every process that serves and so
# finds what a symbolic link on the way there means by then.
# SPDX-License-Identifier: MIT

module Rondo
  # Looks into a folder without serving it.
  # @api private
  module StaticFolder
    ERROR_PAGE = "500.html"
    PAGE_BYTES = 1 << 20
    # Neither through a symbolic link nor waiting for who writes to a FIFO.
    READ_PAGE = File::RDONLY | File::NOFOLLOW | File::NONBLOCK | File::NOCTTY | File::BINARY

    module_function

    # @param given [String, #to_path]
    # @param setting [String] for the message
    # @return [String] its absolute path; symbolic links stay what they are
    # @raise [ConfigurationError] one line
    def find(given, setting = "public")
      given = File.path(given)
      raise ConfigurationError, "#{setting}: the name of the folder is empty" if given.empty?

      File.absolute_path(given).tap { |path| File.stat("#{path}/.") }
    rescue SystemCallError => e
      raise ConfigurationError, "#{setting}: cannot read the folder #{File.absolute_path(given)}: " \
                                "#{SystemCallError.new(nil, e.errno).message}"
    rescue TypeError, ArgumentError
      raise ConfigurationError, "#{setting} must be the path of a folder, not #{given.inspect}"
    end

    # @param folder [String, nil]
    # @return [String, nil] what it has for a client whose request has failed
    def error_page(folder)
      path = File.join(folder, ERROR_PAGE) if folder
      return unless path && File.lstat(path).file?

      text = File.open(path, READ_PAGE) { |file| file.read(PAGE_BYTES + 1) if file.stat.file? }
      text if text && text.bytesize <= PAGE_BYTES
    rescue SystemCallError, IOError
      nil
    end
  end
end
