# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require "puma/plugin"

Puma::Plugin.create do
  def start(launcher); end
end
