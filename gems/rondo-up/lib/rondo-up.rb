# frozen_string_literal: true

# For Bundler.require, which knows the name of the gem only.
# SPDX-License-Identifier: MIT

require "up"
