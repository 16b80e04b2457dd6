# frozen_string_literal: true

# Required into every Ruby of a run under another locale (tools/run_locale). Ruby takes only LC_CTYPE from the
# environment, but a library of the application may take all of it, as readline and many others do.
# SPDX-License-Identifier: MIT

require "fiddle"

LC_ALL = 6 # of glibc
set = Fiddle::Function.new(Fiddle.dlopen(nil)["setlocale"], [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOIDP)
abort "there is no locale #{ENV.fetch("LC_ALL", nil)} in #{ENV.fetch("LOCPATH", nil)}" if set.call(LC_ALL, "").null?
