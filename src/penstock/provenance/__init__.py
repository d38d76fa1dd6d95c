"""The certificate that results are signed with, and what a signature says of them."""
