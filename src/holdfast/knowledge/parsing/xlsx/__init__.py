"""Workbooks (XLSX, XLSM, also strict): the tables of each sheet as a reader sees them, row by row."""

from holdfast.knowledge.parsing.xlsx.workbook import parse

__all__ = ["parse"]
