# frozen_string_literal: true

# The frame of each page of the site, in place of YARD's, which needs frames and jQuery.
# SPDX-License-Identifier: MIT

def stylesheets
  []
end

def javascripts
  []
end

def menu_lists
  []
end

# The page of contents.
def listing
  erb(:listing)
end
