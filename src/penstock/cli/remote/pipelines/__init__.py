"""`penstock pipeline`: its commands, the files that describe pipelines, and the display of their progress."""
