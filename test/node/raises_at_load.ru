# frozen_string_literal: true

# An application that does not load.
# SPDX-License-Identifier: MIT

raise "no such database"
