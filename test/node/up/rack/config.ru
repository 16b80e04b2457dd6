# frozen_string_literal: true

# An application as those of Up! are written: a class that answers, pages in heredocs, a compiler that is switched on.
# SPDX-License-Identifier: MIT

require_relative "pages"

if RUBY_ENGINE == "ruby"
  if defined?(RubyVM::ZJIT)
    RubyVM::ZJIT.enable
  elsif defined?(RubyVM::YJIT) && RubyVM::YJIT.respond_to?(:enable)
    RubyVM::YJIT.enable
  end
end

run Pages
