# frozen_string_literal: true

# tmp/restart.txt, which `bin/rails restart` touches.
# SPDX-License-Identifier: MIT

module Rondo
  # Knows whether the file was touched since it last looked.
  class RestartFile
    # @param path [String]
    def initialize(path = File.expand_path("tmp/restart.txt"))
      @path = path
      @before = modified
    end

    # @return [Boolean]
    def touched?
      now = modified
      return false if now == @before

      @before = now
      true
    end

    private

    def modified
      File.mtime(@path)
    rescue SystemCallError
      nil
    end
  end
end
