# frozen_string_literal: true
# SPDX-License-Identifier: MIT

tag Puma::Const::VERSION[/\A\d/]
workers 2 if Puma.forkable? && !Puma.jruby? && !Puma.windows?
port 3000
