"""Word documents (DOCX, DOCM, DOTX, also strict): headings, lists, tables, equations, notes and text boxes."""

from holdfast.knowledge.parsing.docx.document import parse

__all__ = ["parse"]
