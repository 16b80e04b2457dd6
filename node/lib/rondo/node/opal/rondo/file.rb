# backtick_javascript: true
# frozen_string_literal: true

# What Opal's File lacks of Ruby's, for bodies that are files.
# SPDX-License-Identifier: MIT

# Opal's files.
class File
  # @return [String] what the server sends instead of the enumerated lines
  def to_path
    path
  end
end
