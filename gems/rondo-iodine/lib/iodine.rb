# frozen_string_literal: true

# What `require "iodine"` gives: the API of iodine 0.7.60 over Rondo. Applications that were written for iodine run
# without an edited line. docs/IODINE.md has what is different; each file of lib/iodine/ begins with its subject.
# SPDX-License-Identifier: MIT

require "stringio"
require "socket"
require "rondo"
require "iodine/version"
require "iodine/settings"
require "iodine/words"
require "iodine/tasks"
require "iodine/states"
require "iodine/connection"
require "iodine/adapter"
require "iodine/old_upgrade"
require "iodine/channels"
require "iodine/tls"
require "iodine/addresses"
require "iodine/listen"
require "iodine/connect"
require "iodine/running"
require "iodine/json"
require "iodine/mustache"
require "iodine/rack_utils"
require "iodine/deprecated"
require "iodine/deprecated_verbs"
require "iodine/cli"
require "rack/handler/iodine"

Iodine::Base::CLI.parse if defined?(IODINE_PARSE_CLI) && IODINE_PARSE_CLI
Iodine::Base::CLI.complete
