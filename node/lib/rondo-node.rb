# frozen_string_literal: true

# What Bundler.require loads; the work is in rondo/node/cli.rb.
# SPDX-License-Identifier: MIT

require "rondo/node"
