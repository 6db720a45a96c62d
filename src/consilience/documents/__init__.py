"""Documents about results: their parts, what they say, and how terminal, HTML, JSON and notebook show them."""
