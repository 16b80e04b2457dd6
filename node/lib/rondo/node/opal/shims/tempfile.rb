# frozen_string_literal: true

# Libraries name Tempfile when they are loaded, and use it for uploads. Bodies are in memory here.
# SPDX-License-Identifier: MIT

# A file that is not made.
class Tempfile
  def initialize(*)
    raise NotImplementedError, "there are no temporary files on Node"
  end
end
