"""Analyzes the form of a query: its sentences, whether it is in the first person, whether it asks for a time."""

import re

MAX_PARTS = 4

# A full stop ends a sentence if a space and no lower-case letter follow, and if no initial, number or title precedes:
# a wrong split would lose half of the sentence.
_SENTENCE = re.compile(
    r".+?(?:"
    r"[\u3002\uff01\uff1f\uff1b]+[\u201d\u2019\u300d\u300f\uff09]*"
    r"|(?<![?!;])[?!;]++[\"')\u201d\u2019]*(?=\s|$|[^\x00-\x7f])"
    r"|(?<!\b\w)(?<!\b(?:Mr|Ms|Dr|St|vs|No))(?<!\b(?:Mrs|Inc|Ltd|e\.g|i\.e))\.[\"')\u201d\u2019]*(?=\s+[^a-z\s])"
    r"|\n|$)",
    re.DOTALL,
)
_MARKS = " \t\r\n.;!?\u3002\uff01\uff1f\uff1b"
# A lower-case "i" is often not the pronoun, so a verb must follow.
_VERBS = (
    "am|was|have|had|do|did|can|could|will|would|should|like|want|need|love|said|told|ask|mention|go|went|live|work"
)
_FIRST_PERSON = re.compile(
    r"(?<![\w.])(?:I(?![./]\w)|[Mm]e|ME|[Mm]y|MY|[Mm]ine|[Mm]yself)(?!\w)"
    rf"|(?<![\w.])i(?:['\u2019]|\s+(?:{_VERBS})(?!\w))"
    r"|我(?!们|国|校|院|市|省|军|方)|咱(?!们)|俺(?!们)|本人"
)
_ASKS_WHEN = re.compile(
    r"\b(?:when|(?:what|which)\s+(?:date|day|time|week|month|year)|how\s+long\s+ago)\b"
    r"|什么时[候间]|何时|哪[一]?[天日年]|哪个?(?:月|星期|周)|几[月号点]|周几|星期几|时间是",
    re.IGNORECASE,
)


def parts(question: str) -> list[str]:
    """Return the sentences of a query, at most four; none if it has only one."""
    sentences = [found.strip(_MARKS) for found in _SENTENCE.findall(question) if any(map(str.isalnum, found))]
    return sentences[:MAX_PARTS] if len(sentences) > 1 else []


def is_first_person(question: str) -> bool:
    """Whether a query is in the first person."""
    return _FIRST_PERSON.search(question) is not None


def asks_when(question: str) -> bool:
    """Whether a query asks for a time."""
    return _ASKS_WHEN.search(question) is not None
