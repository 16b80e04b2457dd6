# frozen_string_literal: true

# A real browser over https.
# SPDX-License-Identifier: MIT

require_relative "browser_behaviour"

class TLSBrowserTest < TLSCase
  include BrowserBehaviour
end
