# frozen_string_literal: true

# SPDX-License-Identifier: MIT

Rails.application.routes.append do
  get "/speak" => "news#speak"
  get "/latest" => "news#latest"
end
