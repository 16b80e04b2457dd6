# frozen_string_literal: true

# Words of Puma's and Thin's configuration that iodine defines for every object, each with its warning.
# SPDX-License-Identifier: MIT

{ after_fork: :after_fork, after_fork_in_worker: :enter_child, after_fork_in_master: :enter_master,
  on_worker_boot: :after_fork, on_worker_fork: :before_fork, before_fork: :before_fork }.each do |verb, state|
  next if Object.private_method_defined?(verb) || Object.method_defined?(verb)

  Object.define_method(verb) do |*, &block|
    warn "#{verb} is deprecated, use Iodine.on_state(:#{state})."
    Iodine.on_state(state, &block)
  end
  Object.send(:private, verb)
end
