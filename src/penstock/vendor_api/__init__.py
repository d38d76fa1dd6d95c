"""The API that vendors are written against: public, and described in docs/vendor-api.md."""
