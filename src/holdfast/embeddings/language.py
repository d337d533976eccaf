"""Detects the language of a text by its script.

A character of Chinese, Japanese or Korean script counts as much as a word of any other script:

    fewer such characters than other words        "en": English, and every language without its own model
    otherwise, more than a tenth kana or hangul   "other": Japanese or Korean
    otherwise                                     "zh"

So `我用 PostgreSQL 部署` is Chinese, `My colleague 王明 likes tea` is English, and a single の does not make a Chinese
text Japanese. A Japanese text of Han characters only (`東京都庁`) counts as Chinese. A text without letters is "en".
"""

import re
from typing import Literal

Language = Literal["en", "zh", "other"]

DECIDING = 4000  # characters that are examined: more than a model reads of a text

_HAN = re.compile("[\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_KANA_OR_HANGUL = re.compile(
    "[\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fd-\u30ff\uff66-\uff6f\uff71-\uff9d"  # kana
    "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]"  # hangul
)
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_TENTH = 10


def language_of(text: str) -> Language:
    """Return the language of a text. It determines the model of its vector and how search weights its words."""
    beginning = text[:DECIDING]
    if beginning.isascii():
        return "en"
    rest, han = _HAN.subn(" ", beginning)
    rest, spelled = _KANA_OR_HANGUL.subn(" ", rest)
    if han + spelled == 0 or han + spelled < len(_WORD.findall(rest)):
        return "en"
    return "other" if spelled * _TENTH > han + spelled else "zh"
