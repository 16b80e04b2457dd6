# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require "puma/plugin"
require "puma/dsl"

module Puma
  class DSL
    def metrics_url(url)
      @options[:metrics_url] = url
    end
  end
end

Puma::Plugin.create do
  def start(launcher); end
end
