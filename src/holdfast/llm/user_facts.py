"""Finds the part of a message that is worth remembering: lasting facts about the user, in English and Chinese.

It applies plain rules to each sentence. A sentence is kept if it asks for that ("remember that …"), if it is a standing
instruction, or if it is a statement of the user about themselves. Greetings, questions, requests, opinions on what was
just said, pasted code and statements that are true only for the moment are not kept.
"""

import re

from holdfast.core.sentences import sentences

MAX_TEXT = 8_000  # characters that are read
MAX_SENTENCE = 400  # characters; a longer sentence is pasted text

_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(
    r"^\s*(?:Traceback|File \"|at \w+[.(]|\[?\d{4}-\d\d-\d\d[T ]\d\d:|\[?(?:ERROR|WARN|INFO|DEBUG)\b"
    r"|(?:def|class|import|function|const|let|var|public|return|SELECT|INSERT|UPDATE|DELETE|CREATE)\b.*[(=;*:{]"
    r"|from \w+ import|#include|\$ |>>> |<[/!\w]|[{}()\[\]]|//|/\*)"
    r"|[;{}]\s*$|[=!]=|=>|->|::|\w\(\)"
)


def _words(*patterns: str) -> re.Pattern[str]:
    """Compile English patterns that match whole words, in any case."""
    return re.compile(rf"(?<![\w'])(?:{'|'.join(patterns)})(?![\w])", re.IGNORECASE)


_OPENING = re.compile(
    r"(?:(?:hi|hello|hey|thanks|thank you|well|so|and|but|also|oh|ah|yes|yeah|yep|no|nope|ok|okay|sure|haha|sorry"
    r"|btw|by the way|actually|fyi|just so you know|you know|anyway|true|right)(?: there)?\s*[,!.:-]\s*)+"
    r"|(?:(?:你好|您好|嗨|谢谢|对了|顺便说一下|顺便说一句|其实|嗯+|哦|啊|好的?|是的|不是?|另外|还有|哈哈+)[\uff0c,\uff01!、\s]+)+",
    re.IGNORECASE,
)
_REMEMBER_REQUEST = re.compile(
    r"(?:please\s+|pls\s+)?(?:(?:remember|don'?t forget|do not forget|keep in mind|bear in mind)(?:\s+that\b|\s*[:,])?"
    r"|(?:note|for the record|take note)(?:\s+that\b|\s*[:,]))\s*(?!to\b|when\b|me\b|this\b|it\b)(?P<en>\S.*)"
    r"|(?:请|麻烦|你?要|一定要?)?(?:帮我)?(?:记住|记一下|记下|别忘了|不要忘记?了?|记得)[\uff0c,\uff1a:\s]*(?!.*提醒|要|去|给|把|帮|明)(?P<zh>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_STANDING = re.compile(
    r"(?:please\s+)?(?:from now on|always|never|in (?:the )?future)\b(?!\s+(?:mind|heard|been|seen|a\b))"
    r"|(?:please\s+|you (?:can|may)\s+)?call me (?!a\b|an\b|back|when|later|at\b|tomorrow|if\b|now|on\b|in\b)\w"
    r"|(?:请|你可以)?(?:以后|从现在起|从今以后|今后|永远|每次|叫我)",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r".*[?\uff1f][\"')\u201d\u2019]*$"
    r"|(?:what|when|where|which|who|whom|whose|why|how|is|are|am|was|were|do|does|did|can|could|will|would|shall|should"
    r"|has|have|may|might|isn't|aren't|don't you|doesn't|didn't|can't|couldn't|won't|wouldn't|any)\s"
    r"|.*[吗么][。\uff01!.~]*$|(?:.{0,4}|.*(?:什么|怎么|哪|谁|多少|几).*)呢[。\uff01!.~]*$"
    r"|(?:请问|为什么|怎么|什么|哪|谁|多少|几|能不能|可不可以|是不是|有没有|你能|你可以|能否|可否)",
    re.IGNORECASE | re.DOTALL,
)
_REQUEST = re.compile(
    r"(?:please|pls|let'?s|let me|help|show|give|tell|send|make|find|get|book|order|cancel|write|read|translate|explain"
    r"|summari[sz]e|list|check|look|open|close|add|remove|delete|change|update|set|create|play|stop|start|go|try|call"
    r"|search|compare|calculate|convert|fix|run|use|put|move|copy|print|save|schedule|remind|wake|ask|answer|repeat"
    r"|describe|draw|generate|track|buy|return|forget|remember|don'?t|do not|wait|come|take|bring|turn|pick|choose"
    r"|suggest|recommend|teach|review|rewrite|shorten|continue|keep|imagine|assume|pretend|say|think|consider)\b"
    r"|(?:请|麻烦|帮|给我|替我|把|告诉|让我|来|查|看|写|翻译|再|可以|能|讲|推荐|介绍|解释|总结|打开|关|删|改|取消|订|买|提醒|记得|记住"
    r"|别忘|等|算|试|继续|停)",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"(?<![\w.])(?:I|i)(?:['\u2019](?:m|ve|d|ll))?(?![\w./])"
    r"|(?i:(?<!\w)(?:we(?:['\u2019](?:re|ve|d|ll))?)(?!\w))"
    r"|(?i:(?<!\w)(?:my|our|mine|for me)(?!\w))"
    r"|我(?!国|校|院|市|省|军|方)|咱|俺|本人"
    r"|^(?:爸|妈|爷爷|奶奶|外公|外婆|哥|姐|弟|妹|叔叔|舅|姑|姨|伯|老公|老婆|儿子|女儿|同事|上司|下属|老板)"
)
_STRONG = _words(
    r"(?<!'d )(?<!would )love|hate|dislike",
    r"allerg\w+|vegetarian|vegan|diabet\w+|asthma\w*|born|favou?rite|prefer\w*|always|never|usually",
    r"every (?:day|week|month|year|morning|evening|night|weekend|\w+day)|daily|since (?:19|20)\d\d|for \w+ years",
    r"years (?:old|ago)",
    r"(?:my|our) (?:name|birthday|wife|husband|son|daughter|mother|father|mom|dad|brother|sister|partner|job|address)"
    r"(?:'s \w+)? (?:is|are|was)",
    r"got (?:\w+ )?(?:promoted|married|engaged|divorced|hired|fired|a new job|a dog|a cat)|getting married",
    r"(?:turned|moved|adopted|graduated|retired|became|bought|quit) (?!it|this|that)\w+|good at|bad at|going to be an?",
)
_STRONG_ZH = re.compile(
    "过敏|住在|出生|生日|从来|从不|每[天周年月晚早]|一直|总是|平时|通常|一般|习惯|毕业|结婚|最喜欢|不吃|讨厌|岁|在.{1,12}(?:工作|上班|上学)|是一[名个位]|(?:买|搬|生)了"
)
_FLEETING = _words(
    r"right now|at the moment|just now|for now|today|tonight|tomorrow|this (?:morning|afternoon|evening)",
    r"(?:one|a|an|in|\w+) (?:moment|minutes?|seconds?|hour)",
    r"(?:I'?m|I am|I feel|I was)(?: (?:so|very|really|just|a bit|a little|not|still|too|quite|also|pretty|all))* "
    r"(?:tired|hungry|thirsty|bored|busy|back|here|done|sorry|sure|ready|fine|ok|okay|well|good|great|confused|excited|late"
    r"|glad|happy|sad|angry|annoyed|lost|stuck|curious|afraid|impressed|surprised|cold|hot|looking|trying|wondering"
    r"|asking|calling|writing|having|getting|seeing|thinking|about to|going|waiting|testing|checking|talking|on my way"
    r"|leaving|coming)",
    r"I'?(?:ll| will)|I have to|I'?ve got to|I gotta|I must|I should|I can see",
    r"I can(?:'t|not)? (?:find|see|open|access|log|get|do|hear)",
    r"I (?:really |just |still |also )?(?:want|need|wanna|wanted|needed)|I(?:'d| would) (?:like|love)",
    r"I (?:\w+n't |do not |did not |cannot )?(?:really |also |just )?(?:think|guess|see|agree|understand"
    r"|mean|hope|wish|suppose|wonder|doubt|said|asked|tried|clicked|forgot|missed|get|got (?:it|that|this|an?|the)|care"
    r"|mind|thought|meant|appreciate|noticed|saw|read|heard|did|received)",
    r"I (?:don't|do not|didn't) (?:know|believe|remember)|I know(?: that| what| it| you|[.,!]|$)|I (?:just|only)",
)
_PROBLEM = _words(
    r"(?:doesn'?t|won'?t|isn'?t|hasn'?t|haven'?t|didn'?t) (?:work|start|load|open|arrive|respond|compile|connect|show"
    r"|come|receive)\w*",
    r"not (?:working|starting|loading|responding|arrived)|keeps? (?:crash|fail|freez|show|say|gett)\w*",
    r"(?:is|are|was) (?:still |so |too |very )?(?:down|broken|late|stuck|slow|missing|black|frozen|gone|wrong"
    r"|empty|high)",
    r"my (?:question|request|message|problem|issue|point|bad|fault|mistake|turn|pleasure|answer)",
    r"crash\w*|errors?|bugs?|fails|failed|timed out|exception",
)
_AMBITION = _words(
    r"(?:want|like|love|hope|plan) to (?:learn|become|be an?|study|move|retire|travel|live|quit|stop|lose|write a book"
    r"|run a|marry|have (?:kids|children)|buy a house)"
)
_FLEETING_ZH = re.compile(
    "现在|刚才|刚刚|正在|马上|等一下|等我|一会|今天|今晚|明天|昨晚|我先|饿了?|累了?|困了?|我想(?!学|当|成为|考|搬|做一)|我要(?!是)|需要|我得|觉得|认为|我猜"
    "|知道|明白|不懂|没懂|同意|我看|试试|试一|还没|打不开|不上|用不了|坏了|报错|出错|错了|失败|卡住|谢|没收到|不见了|听不|看不|问一下|咨询|好奇|开玩笑"
)
_HAN = re.compile("[\u4e00-\u9fff]")


def has_facts(text: str) -> bool:
    """Whether a message states something about the user that is worth remembering."""
    return extract_facts(text) is not None


def extract_facts(text: str) -> str | None:
    """Return the sentences that are worth remembering, without introductory words; None if there are none."""
    plain = _FENCED.sub("\n", text[:MAX_TEXT])
    facts = [part for sentence in sentences(plain) if (part := _keep_fact(sentence)) is not None]
    return " ".join(facts) or None


def _keep_fact(sentence: str) -> str | None:
    if len(sentence) > MAX_SENTENCE or _CODE.search(sentence):
        return None
    opening = _OPENING.match(sentence)
    statement = sentence[opening.end() :] if opening else sentence
    if _is_short(statement) or _QUESTION.match(statement):
        return None
    if request := _REMEMBER_REQUEST.match(statement):
        rest: str = request["en"] or request["zh"]
        return None if _is_short(rest) else rest
    if _STANDING.match(statement):
        return statement
    return (
        statement if not _REQUEST.match(statement) and _OWN.search(statement) and not _is_fleeting(statement) else None
    )


def _is_fleeting(statement: str) -> bool:
    """Whether a statement is true only for the moment, or is about the conversation itself."""
    if statement.lower().startswith(("if ", "如果", "要是")) or _PROBLEM.search(statement):
        return True
    if _STRONG.search(statement) or _STRONG_ZH.search(statement) or _AMBITION.search(statement):
        return False
    return bool(_FLEETING.search(statement) or _FLEETING_ZH.search(statement))


def _is_short(text: str) -> bool:
    """Whether a text is too short for a statement: under three words. A Chinese character counts as one."""
    han = len(_HAN.findall(text))
    return han + len(re.findall(r"[^\W\d_]+(?:['\u2019]\w+)?", _HAN.sub(" ", text))) < 3
