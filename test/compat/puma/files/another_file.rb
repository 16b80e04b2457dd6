# frozen_string_literal: true
# SPDX-License-Identifier: MIT

load File.expand_path("../shared/common.rb", __FILE__)
port 3000
