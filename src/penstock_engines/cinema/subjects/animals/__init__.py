"""Animals on land, in the air and in the sea. `quadruped` and `flyer` draw most of them."""
