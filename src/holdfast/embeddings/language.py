"""Which language a text is taken to be in, decided by its script alone.

A character of Chinese, Japanese or Korean script weighs as much as a word of any other script:

    fewer of them than other words        "en": English, and all that has no model of its own
    else, over a tenth kana or hangul     "other": Japanese or Korean
    else                                  "zh"

So `我用 PostgreSQL 部署` is Chinese, `My colleague 王明 likes tea` is English, and a single の makes no Chinese text
Japanese. A Japanese text of Han characters alone (`東京都庁`) is taken for Chinese; a text without letters is "en".
"""

import re
from typing import Literal

Language = Literal["en", "zh", "other"]

DECIDING = 4000  # characters: more than a model reads of a text

_HAN = re.compile("[\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_KANA_OR_HANGUL = re.compile(
    "[\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fd-\u30ff\uff66-\uff6f\uff71-\uff9d"  # kana
    "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]"  # hangul
)
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_TENTH = 10


def language_of(text: str) -> Language:
    """The language whose model and words a text gets."""
    beginning = text[:DECIDING]
    if beginning.isascii():
        return "en"
    rest, han = _HAN.subn(" ", beginning)
    rest, spelled = _KANA_OR_HANGUL.subn(" ", rest)
    if han + spelled == 0 or han + spelled < len(_WORD.findall(rest)):
        return "en"
    return "other" if spelled * _TENTH > han + spelled else "zh"
