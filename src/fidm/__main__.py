"""``python -m fidm`` is the ``fidm`` command."""

from fidm.cli.main import run

run()
