# frozen_string_literal: true

Rails.application.routes.append do
  get "/speak" => "news#speak"
  get "/latest" => "news#latest"
end
