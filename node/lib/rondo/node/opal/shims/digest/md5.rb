# frozen_string_literal: true

# All digests are in one file here.
# SPDX-License-Identifier: MIT

require "digest"
