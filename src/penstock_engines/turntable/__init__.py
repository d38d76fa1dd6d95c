"""Model to film: `turntable_engine` turns a model once around before a soft ground, with sound."""
