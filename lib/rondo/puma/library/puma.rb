# frozen_string_literal: true

# Found if no gem has it. SPDX-License-Identifier: MIT
require "rondo/puma/module"
