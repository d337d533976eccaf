"""Parsers: files as text with structure. They do no I/O but read the file that they are given."""

from holdfast.knowledge.parsing.units import Block, BlockKind, Unit

__all__ = ["Block", "BlockKind", "Unit"]
