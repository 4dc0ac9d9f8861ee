"""The wire: HTTP, SMTP and signatures, as every channel needs them."""
