# frozen_string_literal: true
# SPDX-License-Identifier: MIT

rackup DefaultRackup
port 3000
