# frozen_string_literal: true

# Who a connection is of, as /cable?visitor=NAME says.
# SPDX-License-Identifier: MIT

module ApplicationCable
  class Connection < ActionCable::Connection::Base
    identified_by :visitor

    def connect
      self.visitor = request.params["visitor"]
      reject_unauthorized_connection if visitor == "nobody"
      raise "on purpose" if visitor == "broken"

      logger.add_tags(visitor) if visitor
    end
  end
end
