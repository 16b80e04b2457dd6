# frozen_string_literal: true

# The tests of fibers that need no gem, with the newest versions of net-http and of others that are gems today. Run by
# tools/run_drivers.
# SPDX-License-Identifier: MIT

$LOAD_PATH.unshift(*%w[lib test].map { |folder| File.expand_path("../../#{folder}", __dir__) })
%w[fibers http_clients offload scheduler scheduler_ends standard_library].each do |name|
  require_relative "../unit/fibers/#{name}_test"
end
