"""Finds relations that a sentence states between two names, by the words between them. Precision goes before recall."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from holdfast.memory.graph.entity import EntityType, Relation

MAX_RELATIONS = 200  # of one text
_SHORTEST_GAP = 1
LONGEST_GAP = 70  # characters between the names
LONGEST_DESCRIPTION = 300
_LONGEST_AFTER = 16

Kinds = frozenset[EntityType]
PERSON: Kinds = frozenset({"Person"})
MAKER: Kinds = frozenset({"Person", "Organization", "Name"})
WORK: Kinds = frozenset({"Work", "Technology", "Organization", "Name"})
GROUP: Kinds = frozenset({"Organization", "Name"})
PLACE: Kinds = frozenset({"Place", "Name"})
THING: Kinds = frozenset({"Organization", "Place", "Name", "Work", "Technology"})
SOFTWARE: Kinds = frozenset({"Technology", "Identifier", "Name"})
SOMEBODY: Kinds = frozenset({"Person", "Name"})


class NamePlace(NamedTuple):
    """A mention of an entity, for the search of relations."""

    start: int
    end: int
    key: str
    type: EntityType


class RelationRule(NamedTuple):
    """A relation from the left name to the right one, or back, if the words between and after them match."""

    type: str
    between: str
    left: Kinds
    right: Kinds
    turned: bool = False
    after: str | None = None


_THE = r"(?:the |a |an |its |their |our )?"
_WHO = r"(?:,? who | )"
_WAS = r"(?:is|was|are|were|became|has been|serves as|served as|works as|worked as)"
_DESCRIBED = r"(?:[\w-]+ ){0,3}?"
_LEADER = (
    r"(?:president|chairman|chairwoman|chair|director|managing director|executive director|ceo|CEO|CTO|CFO|COO|chief \w+ officer|head|"
    r"leader|manager|mayor|governor|prime minister|chancellor|king|queen|captain|coach|editor|dean|principal)"
)
_MAKER = r"(?:founder|co-founder|cofounder|author|creator|inventor|director|writer|composer|designer|architect|producer|developer|painter|maintainer)"
_MADE = r"(?:founded|co-founded|cofounded|established|created|written|co-written|authored|directed|composed|designed|invented|developed|painted|produced|built|launched|maintained|recorded)"
_MAKES = r"(?:founded|co-founded|cofounded|established|wrote|co-wrote|authored|directed|composed|designed|invented|developed|painted|created|launched|maintains)"
_AT_TIME = r"(?:(?:on|in) [\w ,]{1,24} )?"
_EMPLOYEE = r"(?:employee|engineer|developer|manager|analyst|professor|lecturer|researcher|scientist|consultant|designer|accountant|lawyer|nurse|doctor|teacher|student|intern|member)"

ENGLISH: tuple[RelationRule, ...] = (
    RelationRule("LEADS", rf"{_WHO}?,? ?{_WAS} {_THE}{_DESCRIBED}{_LEADER} (?:of|at) (?:the )?", PERSON, GROUP),
    RelationRule("LEADS", rf", {_THE}{_DESCRIBED}{_LEADER} (?:of|at) (?:the )?", PERSON, GROUP),
    RelationRule("LEADS", rf"['\u2019]s? {_DESCRIBED}{_LEADER},? ", GROUP, PERSON, turned=True),
    RelationRule("LEADS", r" (?:leads|led|heads|headed|runs|chairs|chaired|manages|managed) (?:the )?", PERSON, GROUP),
    RelationRule("CREATED_BY", rf",? (?:which |that )?(?:(?:is|was|were|has been|first) )?(?:a [\w ]{{1,30}} )?{_MADE} {_AT_TIME}by (?:[a-z-]+ ){{0,2}}", WORK, MAKER),
    RelationRule("CREATED_BY", rf",? (?:who )?{_MAKES} (?:the |a |an |his |her )?(?:[a-z-]+ ){{0,2}}", PERSON, WORK, turned=True),
    RelationRule("CREATED_BY", rf"(?:,| {_WAS}) {_THE}{_DESCRIBED}{_MAKER} of (?:the )?(?:[a-z-]+ ){{0,2}}", PERSON, WORK, turned=True),
    RelationRule("CREATED_BY", r" is (?:a|an) (?:[\w-]+ ){0,6}(?:film|novel|book|album|song|opera|play|painting|poem|series) (?:[\w-]+ ){0,3}by ", WORK, MAKER),
    RelationRule("WORKS_AT", r",? (?:who )?(?:currently |now )?(?:works|worked|is working|was working|teaches|taught|interned|interns) (?:as [\w ]{1,30} )?(?:at|for) (?:the )?", SOMEBODY, GROUP),
    RelationRule("WORKS_AT", r",? (?:who )?(?:has |had |recently |just )?joined (?:the )?", PERSON, frozenset({"Organization"})),
    RelationRule("WORKS_AT", rf"(?:,| {_WAS}) {_THE}{_DESCRIBED}{_EMPLOYEE} (?:at|for) (?:the )?", PERSON, GROUP),
    RelationRule("STUDIED_AT", r",? (?:who )?(?:studied|studies|graduated|was educated)(?: [a-z ]{1,30})? (?:at|from) (?:the )?", SOMEBODY, GROUP),
    RelationRule("BORN_IN", rf",? (?:who )?(?:was )?born {_AT_TIME}(?:in|at|near) ", SOMEBODY, PLACE),
    RelationRule("BORN_IN", r" \((?:born|b\.)[\w ,.]{0,24}(?:in|,) ", SOMEBODY, PLACE),
    RelationRule("DIED_IN", rf",? (?:who )?died {_AT_TIME}(?:in|at|near) ", SOMEBODY, frozenset({"Place"})),
    RelationRule("LIVES_IN", r",? (?:who )?(?:lives|lived|is living|resides|moved|relocated) (?:in|to) ", SOMEBODY, PLACE),
    RelationRule("MARRIED_TO", r",? (?:who )?(?:married|is married to|was married to|wed|has been married to) (?:[a-z]+ ){0,2}", SOMEBODY, SOMEBODY),
    RelationRule("MARRIED_TO", r"(?:['\u2019]s?|, (?:the )?) ?(?:first |second |third |late |former |ex-)?(?:wife|husband|spouse)(?: of)?,? (?:is |was )?", SOMEBODY, PERSON),
    RelationRule("CHILD_OF", r"(?:,| is| was)(?: the| a)? (?:\w+ )?(?:son|daughter|child) of (?:[a-z-]+ ){0,3}", SOMEBODY, SOMEBODY),
    RelationRule("CHILD_OF", r"['\u2019]s? (?:\w+ )?(?:son|daughter),? (?:is |was )?", SOMEBODY, PERSON, turned=True),
    RelationRule("CHILD_OF", r"['\u2019]s? (?:father|mother|dad|mom|mum),? (?:is |was )?", SOMEBODY, PERSON),
    RelationRule("SIBLING_OF", r"(?:['\u2019]s?|,| is the| was the)(?: the)? (?:\w+ )?(?:brother|sister)(?: of)?,? (?:is |was )?", SOMEBODY, PERSON),
    RelationRule("LOCATED_IN", r",? (?:which )?(?:(?:is|are|was|were) )?(?:located|based|situated|headquartered) (?:in|at|near) (?:the )?(?:[a-z]+ ){0,3}", THING, PLACE),
    RelationRule("LOCATED_IN", r",? (?:is|was) (?:a|an|the) (?:[\w-]+ ){0,4}(?:city|town|village|river|lake|mountain|district|municipality|county|island|university|museum|capital|commune|suburb|neighborhood) (?:in|of) (?:[a-z]+ ){0,3}", THING, PLACE),
    RelationRule("LOCATED_IN", r" has its (?:headquarters|head office|main office) in ", GROUP, PLACE),
    RelationRule("OWNED_BY", r",? (?:which )?(?:(?:is|was|has been) )?(?:acquired|bought|owned|purchased|taken over) by (?:the )?", THING, GROUP),
    RelationRule("OWNED_BY", r",? (?:is |was )?(?:a )?(?:wholly owned )?subsidiary of (?:the )?", GROUP, GROUP),
    RelationRule("OWNED_BY", r" (?:has )?(?:acquired|bought|owns|purchased|took over) (?:the )?(?:[a-z]+ ){0,2}", frozenset({"Organization"}), frozenset({"Organization", "Technology", "Name"}), turned=True),
    RelationRule("PART_OF", r",? (?:(?:is|was|are|forms|became) )?(?:a |an )?(?:part|division|member|subsystem|component|module|branch|department) of (?:the )?", THING | SOFTWARE, THING | SOFTWARE),
    RelationRule("PART_OF", r",? (?:(?:is|was|are) )?(?:belongs to|belonged to) (?:the )?", THING, THING),
    RelationRule("DEPENDS_ON", r" (?:(?:service|module|component|job|server|package) )?(?:depends on|requires|relies on|is built on|is based on|runs on|is written in|was written in|uses) (?:the )?", SOFTWARE, SOFTWARE),
    RelationRule("SUCCESSOR_OF", r" (?:succeeded|replaced|supersedes|superseded|replaces) ", SOMEBODY | SOFTWARE, SOMEBODY | SOFTWARE),
)  # fmt: skip

_HEAD_OF = r"(?:首席执行官|首席技术官|首席财务官|CEO|CTO|CFO|总裁|总经理|董事长|主席|总统|总理|部长|市长|省长|校长|院长|所长|社长|负责人|主任|局长)"
_MAKER_OF = r"(?:创始人|联合创始人|创办人|作者|导演|编剧|作曲|发明者|发明人|设计师|开发者|主编|制作人)"

CHINESE: tuple[RelationRule, ...] = (
    RelationRule("LEADS", r"(?:是|为|担任|出任|任|曾任|现任|，)(?:了)?", PERSON, GROUP, after=rf"的?(?:\w{{0,4}})?{_HEAD_OF}"),
    RelationRule("LEADS", rf"(?:的)?(?:现任|前任|前)?{_HEAD_OF}(?:兼\w{{1,6}})?(?:是|为|：)?", GROUP, PERSON, turned=True),
    RelationRule("CREATED_BY", rf"(?:的)?{_MAKER_OF}(?:兼\w{{1,6}})?(?:是|为|：)?", WORK, MAKER),
    RelationRule("CREATED_BY", r"(?:是|为)", PERSON, WORK, turned=True, after=rf"[》”]?的{_MAKER_OF}"),
    RelationRule("CREATED_BY", r"(?:，)?(?:是)?由", WORK, MAKER, after=r"(?:于?\d{4}年)?(?:等人)?(?:所)?(?:共同)?(?:创立|创办|创建|成立|开发|设计|导演|执导|撰写|编写|创作|发明|建造|谱写|制作|著)"),
    RelationRule("CREATED_BY", r"(?:于\d{4}年)?(?:共同)?(?:创立|创办|创建|开发|设计|执导|撰写|编写|创作|发明|谱写|写|著有|写过)(?:了|的)?", PERSON, WORK, turned=True),
    RelationRule("WORKS_AT", r"(?:目前|现在|曾|一直)?(?:在|就职于|任职于|供职于|受雇于)", SOMEBODY, GROUP, after=r"(?:工作|任职|上班|担任|当|任教|实习|做)"),
    RelationRule("WORKS_AT", r"(?:目前|现在|曾|现)?(?:就职于|任职于|供职于|受雇于|任教于)", SOMEBODY, GROUP),
    RelationRule("WORKS_AT", r"(?:于?\d{4}年)?(?:\d+月)?加入了?", PERSON, frozenset({"Organization"})),
    RelationRule("WORKS_AT", r"是", PERSON, frozenset({"Organization"}), after=r"的(?:一名)?(?:教授|工程师|员工|研究员|老师|医生|经理|设计师|分析师|职员|讲师|副教授)"),
    RelationRule("STUDIED_AT", r"(?:于?\d{4}年)?(?:毕业于|就读于|考入|考上了?)", SOMEBODY, GROUP),
    RelationRule("STUDIED_AT", r"(?:曾)?在", SOMEBODY, GROUP, after=r"(?:读书|学习|上学|读研|念书|读博|留学)"),
    RelationRule("BORN_IN", r"(?:，)?(?:于?\d{4}年)?(?:\d+月)?(?:\d+日)?(?:，)?(?:出生于|生于|出生在)", SOMEBODY, PLACE),
    RelationRule("DIED_IN", r"(?:，)?(?:于?\d{4}年)?(?:\d+月)?(?:\d+日)?(?:病逝于|逝世于|卒于|在)", PERSON, PLACE, after=r"(?:逝世|去世|病逝|因病)"),
    RelationRule("LIVES_IN", r"(?:现在|目前|一直|曾)?(?:住在|居住在|定居|定居于|搬到了?|搬去了?|移居)", SOMEBODY, PLACE),
    RelationRule("MARRIED_TO", r"(?:与|和|同)(?:演员|歌手|导演)?", PERSON, PERSON, after=r"(?:于\d{4}年)?(?:结婚|成婚|喜结连理|结为夫妻)"),
    RelationRule("MARRIED_TO", r"的?(?:妻子|丈夫|太太|老婆|老公|夫人)(?:是|叫|为)?", SOMEBODY, PERSON),
    RelationRule("MARRIED_TO", r"(?:嫁给了?|娶了?)", SOMEBODY, PERSON),
    RelationRule("CHILD_OF", r"的?(?:父亲|母亲|爸爸|妈妈)(?:是|叫|为)?", SOMEBODY, PERSON),
    RelationRule("CHILD_OF", r"的?(?:长子|次子|儿子|女儿|长女|次女)(?:是|叫|为)?", SOMEBODY, PERSON, turned=True),
    RelationRule("CHILD_OF", r"是", PERSON, PERSON, after=r"的(?:长子|次子|儿子|女儿|长女|次女)"),
    RelationRule("SIBLING_OF", r"的?(?:哥哥|弟弟|姐姐|妹妹|兄长)(?:是|叫|为)?", SOMEBODY, PERSON),
    RelationRule("LOCATED_IN", r"(?:，)?(?:总部)?(?:位于|坐落于|坐落在|地处|设在|设于)(?:了)?", THING, PLACE),
    RelationRule("LOCATED_IN", r"是", PLACE, PLACE, after=r"的(?:首都|省会|首府|一个\w{1,4})"),
    RelationRule("OWNED_BY", r"(?:于\d{4}年)?(?:\d+月)?(?:，)?被", THING, GROUP, after=r"(?:收购|并购|全资收购)"),
    RelationRule("OWNED_BY", r"(?:于?\d{4}年)?(?:宣布)?(?:全资)?(?:收购|并购)了?", frozenset({"Organization"}), THING, turned=True),
    RelationRule("OWNED_BY", r"是", GROUP, GROUP, after=r"的(?:全资)?子公司"),
    RelationRule("PART_OF", r"(?:隶属于|隶属|属于|归属于)", THING, THING),
    RelationRule("PART_OF", r"是", THING | SOFTWARE, THING | SOFTWARE, after=r"的(?:一部分|一个模块|组成部分|成员|下属\w{0,4}|分支)"),
    RelationRule("DEPENDS_ON", r"\s?(?:服务|模块|组件)?\s?(?:依赖于|依赖|基于|运行在|使用了?|需要)\s?", SOFTWARE, SOFTWARE),
    RelationRule("SUCCESSOR_OF", r"(?:接替了?|取代了?|替代了?)", SOMEBODY | SOFTWARE, SOMEBODY | SOFTWARE),
)  # fmt: skip

_Compiled = list[tuple[RelationRule, re.Pattern[str], re.Pattern[str] | None]]


def _compile(rules: Sequence[RelationRule]) -> _Compiled:
    return [(rule, re.compile(rule.between), None if rule.after is None else re.compile(rule.after)) for rule in rules]


_COMPILED: dict[Literal["en", "zh"], _Compiled] = {"en": _compile(ENGLISH), "zh": _compile(CHINESE)}
_QUOTES_AFTER, _QUOTES_BEFORE = '"\u201d*_\u300b\u300d', '"\u201c*_\u300a\u300c'
_HAN = re.compile("[\u4e00-\u9fff]")
_ENDS = re.compile(r"[.!?;\u3002\uff01\uff1f\uff1b](?:\s|$|(?<=[\u3002\uff01\uff1f\uff1b]))|\n\s*\n|[\n\t|]")
_NEGATED = re.compile(
    r"\b(?:not|never|no longer|n't|if|whether|might|may|could|would|rumou?red)\b|n't\b|不|没有?|未|并非|如果|可能|是否"
)
# The words between two names that can be a relation: all rules contain one of them.
_HINT = re.compile(
    r"is |was |are |were |became|serves|served|works|worked|working|leads|led |heads|headed|runs|chair|manage|founded|established|created|writ|wrote|author|"
    r"direct|compos|design|invent|develop|paint|produc|built|launch|maintain|record|teach|taught|intern|joined|studie|graduat|born|b\. |died|live|reside|moved|"
    r"relocat|marri|wed |wife|husband|spouse|son |daughter|child|father|mother|dad|mom|mum|brother|sister|located|based|situated|headquarter|has its|acquired|"
    r"bought|own|purchas|taken|took|subsidiary|part of|division|member|component|module|branch|department|belong|depends|requires|relies|uses|succeed|"
    r"replace|supersede|president|director|CEO|CTO|CFO|COO|chief|head of|leader|mayor|governor|minister|king|queen|captain|coach|editor|dean|principal|"
    r"founder|creator|engineer|analyst|professor|lecturer|researcher|scientist|consultant|accountant|lawyer|nurse|doctor|student|[\u4e00-\u9fff]"
)


def relations(text: str, names: Sequence[NamePlace]) -> list[Relation]:
    """Return the relations that a text states between its names, which are in the order of their places."""
    found: dict[tuple[str, str, str], Relation] = {}
    for left, right in _neighbours(names):
        between = text[left.end : right.start].lstrip(_QUOTES_AFTER).rstrip(_QUOTES_BEFORE)
        if len(between) < _SHORTEST_GAP or _ENDS.search(between) or not _HINT.search(between):
            continue
        relation = _relation(text, left, right, between.replace("\n", " "))
        if relation is not None:
            found.setdefault((relation.source, relation.type, relation.target), relation)
            if len(found) == MAX_RELATIONS:
                break
    return list(found.values())


def _neighbours(names: Sequence[NamePlace]) -> Iterator[tuple[NamePlace, NamePlace]]:
    for left, right in pairwise(names):
        if left.key != right.key and 0 < right.start - left.end <= LONGEST_GAP:
            yield left, right


def _relation(text: str, left: NamePlace, right: NamePlace, between: str) -> Relation | None:
    for rule, pattern, after in _COMPILED["zh" if _HAN.search(between) else "en"]:
        if left.type not in rule.left or right.type not in rule.right or not pattern.fullmatch(between):
            continue
        if after is not None and not after.match(text, right.end, right.end + _LONGEST_AFTER):
            continue
        sentence = _sentence(text, left.start, right.end)
        if _NEGATED.search(between) or _is_question(text, right.end):
            return None
        source, target = (right, left) if rule.turned else (left, right)
        return Relation(source.key, rule.type, target.key, sentence)
    return None


def _is_question(text: str, end: int) -> bool:
    sign = re.compile(r"[.!?\u3002\uff01\uff1f\n]").search(text, end, end + 120)
    return sign is not None and sign[0] in "?\uff1f"


def _sentence(text: str, start: int, end: int) -> str:
    """Return the sentence around a relation, at most 300 characters."""
    first = 0
    for sign in _ENDS.finditer(text, max(0, start - LONGEST_DESCRIPTION), start):
        first = sign.end()
    stop = _ENDS.search(text, end, end + LONGEST_DESCRIPTION)
    sentence = text[
        max(first, start - LONGEST_DESCRIPTION // 2) : stop.end() if stop else end + LONGEST_DESCRIPTION // 2
    ]
    return " ".join(sentence.split())[:LONGEST_DESCRIPTION]
