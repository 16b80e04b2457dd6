# frozen_string_literal: true

# SPDX-License-Identifier: MIT

Rails.application.routes.draw do
  root "notes#index"
  mount Rondo::StatusPage::Engine => "/server" if defined?(Rondo::StatusPage)
  resources :notes, only: %i[index new create show update destroy]
  post "upload", to: "uploads#create"
  get "download", to: "uploads#show"
  get "inline", to: "uploads#inline"
  get "stored", to: "uploads#stored"
  get "live", to: "streams#live"
  get "live_notes", to: "live_notes#show"
  get "lazy", to: "pages#lazy"
  get "held", to: "live_streams#held"
  get "release", to: "waits#release"
  get "visitor", to: "waits#visitor"
  %w[silent mute early late closed endless sized].each { |name| get "live/#{name}", to: "live_streams##{name}" }
  post "live/file", to: "live_streams#file"
  get "news", to: "news#index"
  get "announce", to: "news#announce"
  get "events", to: "streams#events"
  get "remember", to: "pages#remember"
  get "remembered", to: "pages#remembered"
  get "fails", to: "pages#fails"
  get "where", to: "pages#where"
  get "meet", to: "waits#meet"
  get "linger", to: "waits#linger"
  get "cached", to: "pages#cached"
  get "turbo", to: "turbo#show"
  get "turbo/say", to: "turbo#say"
  get "up", to: "rails/health#show"
end
