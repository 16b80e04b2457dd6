# frozen_string_literal: true

# Which pages there are; tools/reference/site.rb adds the rest of the files.
# SPDX-License-Identifier: MIT

def generate_assets; end

# The contents have to know the guides.
def serialize_index(options); end
