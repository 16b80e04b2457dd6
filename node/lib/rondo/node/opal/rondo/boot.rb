# backtick_javascript: true
# frozen_string_literal: true

# What is loaded before an application on Node: Opal's library for Node, and what Rondo offers to applications.
# SPDX-License-Identifier: MIT

require "nodejs/base"
require "nodejs/kernel"
require "nodejs/file"
require "nodejs/io"
require "nodejs/env"
require "corelib/pattern_matching"
require "corelib/random"
require "corelib/array/pack"
require "corelib/string/unpack"
require "thread"
require "rondo/strings"
require "rondo/core"
require "rondo/file"
require "rondo/regexp"
require "rondo/inspect"
require "rondo"
require "rondo/rackup"
