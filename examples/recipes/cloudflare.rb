# frozen_string_literal: true

# Lines for config/rondo.rb behind Cloudflare. The file has the networks of https://www.cloudflare.com/ips/, one a line.

# These peers may name the client, in the field that Cloudflare overwrites.
trusted_proxies File.readlines("config/cloudflare_ips.txt", chomp: true)
set_remote_address header: "CF-Connecting-IP"
