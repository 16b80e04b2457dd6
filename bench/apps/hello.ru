# frozen_string_literal: false

# The plain application of the tables: a fresh answer of six objects for every request, as a real
# application makes one. Frozen literals would spare the server's garbage collector what no
# application spares it.
run ->(_env) { [200, { "content-type" => "text/plain", "content-length" => "13" }, ["Hello, World!"]] }
