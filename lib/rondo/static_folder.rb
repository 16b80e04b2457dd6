# frozen_string_literal: true

# The folder of `public` and `-www`, before it is opened: by the core (ext/rondo/server/files.c), in every
# process that serves, which finds what a symbolic link on the way there means by then.
# SPDX-License-Identifier: MIT

module Rondo
  # Looks whether a folder can be served.
  module StaticFolder
    module_function

    # @param given [String, #to_path]
    # @return [String] its absolute path; symbolic links stay what they are
    # @raise [ConfigurationError] one line
    def find(given)
      given = File.path(given)
      raise ConfigurationError, "public: the name of the folder is empty" if given.empty?

      File.absolute_path(given).tap { |path| File.stat("#{path}/.") }
    rescue SystemCallError => e
      raise ConfigurationError, "public: cannot read the folder #{File.absolute_path(given)}: " \
                                "#{SystemCallError.new(nil, e.errno).message}"
    rescue TypeError, ArgumentError
      raise ConfigurationError, "public must be the path of a folder, not #{given.inspect}"
    end
  end
end
