"""Common English words. At the start of a sentence, or in a heading, a capital letter does not make one a name.

Regular forms, such as plurals, are left out: see `is_common`.
"""

from functools import lru_cache

_WORDS = """
    abandoned abbreviated ability able about above abroad absence absent absolute abstract abuse academic accept
    acceptance access accessible accession accessories accident accompanied accompanying accomplished accordance
    according account accounts accumulated accurate accused ace achieve achievement acid acquire acquisition
    acres across act action active activist activity actress actual actuarial adaptation adapted adapting add
    addition additional address adjacent adjusted adjustment admin administration administrative administrator
    admire admitted adopt adoption adult advance advantage adventure advertising advice advisor aerial affair
    affect affiliated affiliates affordable after afternoon afterward again against age aged agency agenda agent
    ago agree agreement agricultural agriculture ahead aid aim air aircraft album alert algorithm alignment
    alive all alleged allegiance alliance allocated allow almost alone along alongside already alright also
    alternate alternative although always amateur amazing ambition ambitious amended among amongst amount
    analysis ancestor ancestral ancient and animal animated animation anime annotated announced annual another
    answer anti anticipated any anymore anyone anything apart apartment app apparent appeal appear appearance
    appendix apple application appointed appointment appreciation approach appropriate approval approved
    architect architectural architecture are area argued arise arm armor army arose around arranged arrangement
    arrest arrive arrow art article artifacts artificial artist artistic aside ask aspect asphalt assassinated
    assault assembled assembly assess assigned assignment assist assistance assistant associate association
    assume astronomy atmosphere attached attack attained attempt attend attendees attention attitude attorney
    attributed audience audio aunt author authority authorization authorized auto automated automatically
    automotive autumn available average aviation avoid awarded awareness away awe baby back backdrop background
    backup bacterial bad bag baking balance ball ballistic ban banana band bank bankruptcy bar barrel base
    baseball basic basis basketball bass battle battlefield beach beads bear beat beautiful beauty became
    because become bed been before began begin begun behalf behind being belief believe belonged beloved below
    beneficial benefit besides best between beyond bias bicycle bid big biggest bike bill billion biological
    biology bird birthday birthplace bit black blended blessing block blockade blockbuster blog blood blow board
    body bold bond bonus book boost border bore born borrowed boss both bottom bought bound boundaries box boy
    boyfriend brain branch brand brave bread break breakthrough breathing breed bridge brief bright bring broad
    broke broken bronze brother brought buddy budget build builders built bullet buried business but butter buy
    buyout bye cabinet cable calendar call came camera camp campaign can cancer candidate cannot cap capable
    capacity capital capitalization capitalize captain captivating captive capture car carbon card care carry
    case cash cast castles cat category cats caught cause ceased celebrate cell center central centre century
    ceremony certain certified chain chair chairman challenge chamber champion championship chance change
    changelog channel chaos chapel chapter character characteristic characterized charge charitable charity
    chart chase chat check cheese chemical chess chief child childhood children choice choir choose chose chosen
    churches cinema circle circuit circumstances cited citing citizen citizenship city civil civilian claim
    class classic classical classification classified clean clear clergyman click client climate climbing clips
    clock clones close closest clothing club cluster coach coal coast code coffee cold collaborate collaboration
    collaborative collateral colleague collect collection collective collector colonel color colorful column com
    combat combination combine come comeback comedy comic command commenced comments commercial commission
    commitment committed commodity common communicate communication community companion companionship company
    comparable comparative compare comparison compassion compensation compete competition competitive
    competitors compiled complete completion complex compliance complicated component composed composer
    composition compounds comprehensive comprised computer con conceived concentration concept concern concert
    concluded conclusion condition conduct conference confidence confident configure confirm confirmation
    conflict confused congrats congratulations conjunction connect connection conquer consecutive consequence
    consider considerable consideration consist consistent consolidated consortium constant constitute
    constrained construct construction consumption contact contain contemporary content contents contest context
    contingent continue continuous contract contractual contrast contribute contributing contribution
    contributor control controversial convention conventional conversation conversion convert convince cook cool
    cooperation copy copyright core cork corporate corporation correct correspondence correspondent cost
    costumes cotton could couldn council count counties country couple courage course court courtesy cousin
    cover coverage crash cream create creation creative creatures credit crew crime criminal crisis criteria
    critic critical criticism criticized crop cross crucial cry cultivate culture cumulative curious currency
    current curve custody custom customer cut cycle dad daily dairy damage dance dark darkness data database
    date daughter day dead deadline deal dealt dear death debate debt debut decade decide decision decisive deck
    declare decline decorated decrease dedicated dedication deemed deep default defaults defeat defend defense
    defensive deficit define definitely degree dei delay delivery della demand demo democracy demonstrate
    demonstration denied denote department dependence depicted depicting depicts deploy depth der derive des
    descendant descended descent describe description deserve design designate desire despite destination
    destroy destruction detail detection detective determination determine develop development developmental
    device devoted dialogue did didn died diesel diet difference different differential difficult difficulty dig
    digital direct direction director disable disadvantaged disappeared disc disco discontinued discover
    discovery discuss discussion disease dish dismissed display dispose dispute dissolved distance distant
    distinct distinguish distributed distribution distributor district diverse diversity divided division
    divorce doctor doesn dog doing dollar domain domestic dominant don donated donation done door double doubt
    down download downstream downtown draft drama dramatic draw drawn dream dress drive driven dropped drove
    drug drum due during duty dying each ear earlier earliest earned earning easier easily east eastern easy
    eccentric eco economic economy edge edited edition editor edu educated education educational educator effect
    effective efficient effort egg eggs eight eighteenth eighth either elder elect election electoral electric
    electronic element elephant elevated eligible eliminate else email embarked embrace emerged emerging
    emotional emphasis employed employee employment empty enable enacted encounter encourage end enemy energy
    engage engine enhance enjoy enough enriched ensure enter entertainment enthusiasm entire entitled entity
    entrepreneur entry environment environmental epic episode equal equality equation equilibrium equipment
    equity equivalent era error errors escape especially essay essential establish establishment estate estimate
    etc evaluate evaluation even evening event ever every everyday everyone everything evidence evident
    evolution evolutionary evolved evolving exact examination examined example examples exceed excellent except
    exception excess exchange excited excitement exciting exclusive executed execution executive exercise exert
    exhibit exhibition exist existence exit expand expansion expect expense expensive experience experiment
    experimental expert expiration explain explicit exploration explore exposed exposure express expression
    extend extensive extent external extinct extra extract extraordinary extreme eye face facilitate facility
    fact factory fail failure fair fairy faith fall false fame family famous fan fantasy far farm fascinating
    fashion fast fat fatal fate father favor favorable favorite favourite fear feast feature features federal
    fee feedback feel feet fell fellow felt female fence festivals fetch few fiction field fifteen fifth fifty
    fight figure fill film final finance financial find fine finish fire firm first fiscal fit fitness five fix
    flag flat flee fleet flexibility flies floating floor flow flowers fly focus follow followers food foot
    footage football footprint for force foreign forest forever forget forgot form formal format formation forth
    fortress forward fought found foundation four fourteen fourth fraction fragment franchise free freedom
    freelance frequency frequent fresh friend friendship from front fruit fuel fulfill fulfillment full fully
    fun function fund fundamental funeral fur furniture further fusion future gain game gameplay gang gap garage
    garden garnered garrison gas gave gear gender general generate generation genetically genre genus geographic
    get getting gift girl girlfriend give given glad glass global goal goaltender goes going gold gone good
    gorgeous gospel got gotten governance governing government governmental governor grab grade gradually grant
    graphic great greatest green grew gross ground group grow grown growth guard guardian guest guidance guide
    guidelines guilty guitar gun guys habit had haha hair half hand handbook handful handle happen happier happy
    hard hardware has have haven head headquartered headquarters health healthy hear heard heart heat heavily
    heavy height held hello help helpful hence her here hereditary hero herself hey hi hidden high highest hike
    hill him himself hip hired his historic historical history hit hobby hockey hold holidays home homeless
    hometown honor hop hope hopeful horror horses hospital host hour housed household houses housing how however
    http huge huh human humanitarian humor hundred hunt hurt husband hybrid hypothesis ice icon id idea ideal
    identical identification identify identity ill illegal illness illustrated illustrator image imagination
    imagine immediate immersive impact impairment imperial implemented implicated implications implicit implied
    importance important imported impose impossible impressed impressive improve improvement inactive inception
    inch incident include inclusion income incorporate increase incredible indeed independence independent index
    indicate indication indigenous individual induction industrial industry influence influential information
    informed infrared infrastructure ing inherent inheritance inherited initial initiated initiation initiative
    injured injury inner innocent innovations innovative input insane inscription inside insight inspiration
    install installed instead institution institutional instructor instrument instrumental instrumentation
    insurance intact integrated integrating integration intellectual intelligence intense intensity intention
    interact interaction interest interference interim interior internal international internship interpretation
    intervention interview intimate into introduce introduction invaded invading invasion inventory invest
    investigate investigation investment investors invited inviting invoice involve involvement iron island isn
    isolated isolation issue item items its itself jazz jewelry job jobs join joint journal journalist journey
    jump junior jury just justice keen keep kept key keyboard kill kind kindness kit kitchen knee knew know
    knowledge known label labor laboratory lack lake land language lapse large largest laser last late latest
    latter launch law lawyer lead leadership learn lease least leave led left legacy legal legend legendary
    lemon lending length less lesson let level liability library licence license lies lieutenant life lifelong
    lifestyle lifetime lift light like limit limitations line lineage linear link linkage liquid list listen lit
    literally literature litigation little live loads loan local located location lock login lol long look loop
    lose loss lost lot love low lowest loyal loyalty luck lucky luxury lyrics machinery machines mad made
    magazine magical magician magnitude mail main mainland maintain maintenance major majority make malaria male
    man manage management mandatory mansion manually manufacture manuscript many map march marked market marks
    marriage martial mass massacre massive master match material mathematical mathematician matter maturity
    maximum may maybe meal mean meaningful meant meantime measure measurement mechanical mechanism medal media
    mediate medical medieval meditation medium meet member membership memorable memorial memory men mental
    mention mentor merchandise merchant merged merger message messages met metal meters method methods mid
    middle might migration mile milestone military militia milk million min mind mindful mine mini minimum minor
    minority minute minutes miss missile mission missionary mix mobile mode model modern modification modified
    molecular mom moment monarch money month mood moral more morning mortgage most mother motion motto mountain
    mounted mouse move movement movie much multi multiple municipal murder museum music musical musician must
    mutual myself mysterious mystery name narrow nation national nationwide native natural nature naval near
    nearby nearest necessarily necessary need negative negotiating negotiations neighbor neighborhood neither
    nerve nervous net network never new next night nine ninth nominal non none nope nor normal north northeast
    northern northwest nostalgic not notable note notes nothing noticed notorious novel now nuclear number
    numerical numerous objects obligation observation observatory obstacles obtain occasional occasions
    occupation occupied occur ocean off office official offset often oh oil okay old oldest once one ongoing
    onion online only onto open operate operation opinion opponent opportunistic opportunity opposed opposite
    opposition optimistic option options order orders ordinary ordnance org organised organism organization
    organize origin original originated other otherwise our ourselves out outcome outdoor outlook output outside
    outstanding over overall overcame overcome overnight overseas overview overwhelmed overwhelming owing own
    owner ownership pace packaging packed page paid paint pair panel papal paper parade parallel parent parish
    park part partial participant participate participation particular partner partnership party pass passion
    passionate password past patch patent path patron patronage pattern pay payment peace peaceful peak peer pen
    penalty pending pendulum pension people pepper per percent percentage percussion perfect perform performance
    perhaps period periodic permanent permission permitted persistent person personal personnel perspective
    perturbation pet phase phenomenon philanthropist philosophy phone photo photographer photography physical
    physics piano pick picnic picture piece pilot pitch pivotal place placement plague plain plan plant plasma
    platform play playful please pledge plot plus poetry point police policies policy political politics
    pollution pool poor pop popular popularity population port portfolio portion portrait portray pose position
    positive possession possibility possible possibly post potato potential pour poverty power powerful practice
    praise pre precisely predecessor predominantly preferred pregnant preparation prepare prerequisites
    prescription presence present preserved president presidential press pressure presumably pretty prevent
    previous price pride primarily primary principal principle prior prioritizing priority prison private
    privileges pro probability probable probably problem procedure proceeding proceeds process produce product
    production productivity professional professor profile profit profound program programme progress
    progression progressive project prominent promise promote promotion pronounced proper property proportion
    propose protagonist protect protection protest proud proved provide provinces provision proxy psychology
    public publication publicity published publishing pumped purchase purpose pursue push put qualified
    qualifying quality quantity quarter question queue quick quit quite quote race railroad raise ran random
    range rank rap rapid rare rate rather ratio raw reach reaction read readers ready real realistic reality
    realize realm reason reasonably reboot receive recent reception recipient reclassified recognised
    recognition recognize recommend recommendation reconcile reconciliation reconstruction record recover
    recovery recruited recruitment recurring recycled red redemption reduce refer reference references refined
    refinery reflect reflection reform refuge regard regardless regards regime region regional registered
    regular regulation reinstated rejected relate relation relationship relative release releases relevant
    reliable relief relieved religion religious relocated rely remain remainder remarkable remember remind
    remote removal remove renamed renewable renovation renowned rent rental reorganization repair repay repeated
    replace replacement report represent representation representative reproduction reputation request require
    requirements rescue research reserve residence resident residential resistance resistant resolution resolve
    resource respect respective response responsibility responsible rest restart restaurant restoration restore
    restricted restrictions result results retail retain retired retiree retirement retreat return reveal
    revenge revenue reverse review revised revival revived rhythm rice rich ride rifle right ring rise risk
    rival road rock role roll romance romantic roofs room roots rose round route routine row royal rule rumors
    run rural sacred sad safe safety said salaries sale salt same sanctuary sang sat satellite satisfaction
    satisfy save saw say scale scare scene scenery schedule scheme school science scientific score screen
    screenplay script seal search season seat second secondary secret section sector secular secure security see
    seed seek seem seen segment seized select selection selective self sell semi semiconductor senator send
    senior sense sensitive sent separate separation sequel sequence serene serial series serious serve server
    service session set setback settings settled settlement setup seven seventh several sex sexual shape share
    shareholder sharp she sheet shelf shell shelter shift ship shoes shoot shop shore short shot should show
    shown shy siblings side sign signal signature significance significant silent silver similar simple simply
    simulation simultaneously since sincerely sing single sinking sister sit site situation six sixteen sixth
    sixty size sketch skill sky sleep slightly slow small smart smooth snakes soccer social soft software soil
    solar sold sole solid solo solution solve some someone something sometime somewhat somewhere son song
    songwriter soon sorry sort sought soul sound source south southeastern southern sovereign space spanning
    sparked speak special specialized specialty species specific specifically speculation speed spend spent spin
    spirit split spoke spoken sponsor sport spot spread spring sprint squad square stability stable staff stage
    stained stand standard star start started state statement station statistical statistics status statutory
    stay steam steel step steps still stimulated stimulation stock stockholder stood stop storage store story
    storytelling straight strain strategic strategy streak stream streets strength strengthen stretching strike
    string strip stroke strong struck structural structure struggle student studio study stunning stunt style
    sub subject submitted subordinated subsequent subsidiary substantial substitution subtotal succeed success
    successful such sudden suffer sufficient sugar suggest suggestion suicide suit suitable summary summit sung
    sunset super superhero supplier supply support supposed sur sure surface surprise surreal surrender
    surrounded surrounding survive sustainability sustainable swap swimmer swimming switch sword symbol
    synchronized system systematically table tackle tail take taken tale talent talk tank tape target taste
    tasty taught tax tea teach team teammates tech technical technique technological technology teen television
    tell temperature temple temporarily temporary ten tender tenor term terminal termination territorial
    territory test text than thank thanks that the theater theatre their them theme themselves then theory there
    thereafter thereby therefore these they thing think third thirty this those though thought thousand threat
    threatened three threshold threw thriller through throughout throw thus ticket tickets tide tied ties tight
    till time timeless tip title tobacco today together told tomato ton tone tonight too took tool top topics
    total touch tough tour tourist tournament toward tower town toys track tract trade trademark traditional
    traffic trail train traits trans transfer transform transformation transgender transition translated
    translation transmission transmitted transport transportation travel treat treatment tree trend trial
    triangle tricks tried triggered trilogy trip triple troops trophy trouble troubleshooting true truly trust
    truth try tumor tune turn tutorial twelve twenty twice twist two type typical ultimate unable uncertain
    unclear undergo underground underlying undersea understand understood undertook unexpected unincorporated
    unique unit unity universe universities unknown unless unlike unprecedented unpublished unreal unrealized
    unrelated unresolved unsuccessful until unusual upcoming update upgrade uplifting upon upper ups upset urban
    usage use used useful user users using usual utility utilized vacation valley valuable value variable
    variants variation variety various vast vector vehicle venture venue verify version versions very veteran
    via vibe vice victim victory video view vintage violence violin virtual visible vision visit visual vital
    vivid voice volume volunteer vote wages wait wake walk wall want war warfare warm warning warrant wartime
    was washed waste watch water wave way weak wealth wealthy weapon wearing weather web website week weekend
    weight welcome well went were western what wheat when whenever where whereas whether which while white who
    whole wholly whom whose why wide widespread width wife wild will win wind window wine winter wise wish with
    within without witness woman women won wonder wonderful wooden word work worker workforce workshop world
    worldwide worry worse worst worth would wounded wow write written wrong wrote yeah year yep yet yield yoga
    you young youngest your youth
"""
_COMMON = frozenset(_WORDS.split())
_ENDINGS = (
    ("ies", ("y",)),
    ("es", ("", "e")),
    ("s", ("",)),
    ("ied", ("y",)),
    ("ed", ("", "e")),
    ("ing", ("", "e")),
    ("ly", ("",)),
    ("er", ("", "e")),
)
_SHORTEST_STEM = 3


@lru_cache(maxsize=1 << 15)
def is_common(word: str) -> bool:
    """Whether a lower-case word, or the word that it is a regular form of, is a common one."""
    if word in _COMMON:
        return True
    for ending, replacements in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _SHORTEST_STEM:
            if any(stem + each in _COMMON for each in replacements):
                return True
            if stem[-1] == stem[-2] and stem[:-1] in _COMMON:
                return True
    return False
