# frozen_string_literal: false

# The plain application of the tables. It makes a new answer of six objects for every request, as a real application
# does. Frozen literals would save the server's garbage collector work that it has with real applications.
run ->(_env) { [200, { "content-type" => "text/plain", "content-length" => "13" }, ["Hello, World!"]] }
