"""Rules for what must not stand in the project: where packages came from, and where the project lies."""

import re
from pathlib import Path

from tests.rules.tree import line_of, project

REGISTRY = re.compile(
    r"\bpypi\.org\b|\bpythonhosted\.org\b|\bregistry\.(?:npmjs\.org|yarnpkg\.com)\b|\bnpmmirror\.com\b"
    r"|\"resolved\": *\"http|^ *(?:-i|-f|--(?:extra-)?index-url|--find-links)[ =]|\bindex-url *=",
    re.MULTILINE,
)
HOME = re.compile(r"(?<![\w.~}/-])/(?:root|home/[\w.-]+|Users/[\w.-]+)/|\b[A-Z]:\\Users\\")


def package_addresses(root: Path) -> list[str]:
    """A lock pins by hash; the address is the business of whoever installs."""
    return [
        f"{name}:{line_of(text, match.start())}: `{match[0].strip()}` says where packages come from; leave it out"
        for name, text in project(root)
        for match in REGISTRY.finditer(text)
    ]


def machine_paths(root: Path) -> list[str]:
    """No file knows the machine on which it was written."""
    here = re.compile(re.escape(root.as_posix()) + r"\b")
    return [
        f"{name}:{line_of(text, match.start())}: `{match[0]}` is a path of one machine; make it relative"
        for name, text in project(root)
        for form in (HOME, here)
        for match in form.finditer(text)
        if len(root.parts) > 2 or form is HOME  # a root such as /src is a common word
    ]
