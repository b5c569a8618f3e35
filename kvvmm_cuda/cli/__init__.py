"""The ``kvvmm`` command."""
