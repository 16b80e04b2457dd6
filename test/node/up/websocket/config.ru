# frozen_string_literal: true

# As Up!'s application with WebSockets: a module with callbacks, a Symbol as channel, a status of 0 beside the upgrade.
# SPDX-License-Identifier: MIT

require_relative "talk"

has_compiler = RUBY_VERSION >= "3.3" || RUBY_ENGINE == "opal"
RubyVM::YJIT.enable if has_compiler && defined? RubyVM && defined? RubyVM::YJIT
run Talk
