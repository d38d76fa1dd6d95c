"""`python -m penstock` is `penstock`."""

from penstock.cli.main import app

if __name__ == "__main__":
    app(prog_name="penstock")
