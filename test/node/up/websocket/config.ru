# frozen_string_literal: true

# As Up!'s application with WebSockets: a module with callbacks, a Symbol as channel, a status of 0 beside the upgrade.
# SPDX-License-Identifier: MIT

require_relative "talk"

RubyVM::YJIT.enable if defined?(RubyVM::YJIT) && RubyVM::YJIT.respond_to?(:enable)
run Talk
