# frozen_string_literal: true
# SPDX-License-Identifier: MIT

pidfile "/tmp/single.pid"
single { threads 2, 2 }
cluster { workers 4 }
rackup "hello.ru"
