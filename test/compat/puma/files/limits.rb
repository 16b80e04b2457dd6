# frozen_string_literal: true
# SPDX-License-Identifier: MIT

http_content_length_limit 1_000_000
supported_http_methods %w[GET HEAD POST]
rack_url_scheme "https"
early_hints true
port 3000
