"""Names and words by which English text tells what a name stands for."""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _lines(text: str) -> frozenset[str]:
    return frozenset(line.strip() for line in text.split(",") if line.strip())


GIVEN = _set(
    """
    Aaron Abdul Abigail Abraham Ada Adam Adele Adrian Agnes Ahmed Aisha Alan Albert Alejandro Alex Alexander
    Alexandra Alexei Alexis Alfred Alice Alicia Alison Allan Allen Amanda Amber Amelia Amir Amy Ana Anastasia Andre
    Andrea Andreas Andrei Andrew Andy Angela Anita Ann Anna Anne Annie Anthony Antoine Anton Antonio Anya Arjun
    Arnold Arthur Arturo Ashley Astrid Audrey August Aurora Ava Barbara Barry Beatrice Ben Benjamin Bernard Beth
    Betty Bill Billy Björn Bob Bobby Brad Bradley Brandon Brenda Brian Bruce Bruno Bryan Caleb Calvin Camille Carl
    Carla Carlos Carmen Carol Caroline Catherine Cecilia Charles Charlie Charlotte Chen Chloe Chris Christian
    Christina Christine Christopher Claire Clara Claude Claudia Colin Connor Constance Craig Cynthia Daisy Dan
    Daniel Daniela Danny Darren Dave David Deborah Denise Dennis Derek Diana Diane Diego Dmitri Dmitry Dominic
    Donald Donna Doris Dorothy Douglas Duncan Dylan Ed Eddie Edgar Edith Eduardo Edward Edwin Eileen Elaine Eleanor
    Elena Eli Elias Elizabeth Ella Ellen Elon Emil Emily Emma Emmanuel Enrique Eric Erik Erika Erin Ernest Esther
    Ethan Eugene Eva Evan Evelyn Fatima Felix Fernando Fiona Florence Frances Francesca Francesco Francis Francisco
    Frank Franz Fred Frederick Friedrich Gabriel Gareth Gary Gavin Geoffrey George Gerald Gerard Gianni Gina
    Giovanni Giuseppe Gloria Gordon Grace Graham Greg Gregory Greta Guillermo Gustav Guy Hamid Hank Hannah Hans
    Harold Harriet Harry Harvey Hassan Heather Hector Heidi Heinrich Helen Helena Henri Henry Herbert Herman Hiroshi
    Howard Hugh Hugo Ian Ibrahim Igor Ingrid Irene Iris Isaac Isabel Isabella Ivan Jack Jackie Jackson Jacob
    Jacqueline Jacques Jake James Jamie Jan Jane Janet Jason Javier Jay Jean Jeff Jeffrey Jennifer Jenny Jeremy
    Jerome Jerry Jessica Jesus Jim Jimmy Joan Joanna Joe Joel Johan Johann Johannes John Johnny Jon Jonas Jonathan
    Jorge Jose José Josef Joseph Josh Joshua Joyce Juan Judith Judy Julia Julian Julie Julius Jun Justin Karen Karin
    Karl Karin Kate Katherine Kathleen Katie Kazuo Keith Kelly Ken Kenji Kenneth Kevin Kim Klaus Kurt Kyle Lars
    Laura Lauren Laurence Lawrence Lea Leah Lena Leo Leon Leonard Leonardo Leslie Lewis Liam Lily Linda Lisa Liz
    Lorenzo Louis Louise Lucas Lucia Lucy Ludwig Luigi Luis Luke Lydia Lynn Madeleine Magnus Malcolm Manuel Marc
    Marcel Marco Marcus Margaret Maria Marie Marilyn Mario Marion Mark Marko Marta Martha Martin Mary Matt Matteo
    Matthew Maureen Max Maya Megan Mei Melanie Melissa Mia Michael Michel Michelle Miguel Mike Mikhail Milan Miles
    Miriam Mohamed Mohammed Molly Monica Morgan Muhammad Nadia Nancy Naomi Natalia Natalie Natasha Nate Nathan Neil
    Nelson Niall Nicholas Nick Nicola Nicolas Nicole Nigel Nikita Nikolai Nils Nina Noah Noel Nora Norman Olga
    Oliver Olivia Omar Oscar Otto Owen Pablo Pamela Patricia Patrick Paul Paula Pauline Pedro Penelope Peter Petra
    Phil Philip Philippe Phillip Pierre Pieter Priya Rachel Rafael Raj Rajesh Ralph Ramon Randy Raúl Ray Raymond
    Rebecca Renata René Ricardo Richard Rick Rita Rob Robert Roberto Robin Rodrigo Roger Roland Ron Ronald Rory Rosa
    Rosemary Ross Roy Russell Ruth Ryan Sally Sam Samantha Samuel Sandra Sanjay Sara Sarah Scott Sean Sebastian
    Serena Sergei Sergey Sergio Sharon Sheila Shirley Sid Sidney Sigmund Silvia Simon Simone Sofia Sonia Sophia
    Sophie Stanley Stefan Stella Stephanie Stephen Steve Steven Stuart Sue Susan Suzanne Svetlana Sven Sylvia
    Takashi Tara Tatiana Ted Teresa Terry Theodore Theresa Thomas Tim Timothy Tina Todd Tom Tomas Tommy Toni Tony
    Tracy Trevor Ursula Vanessa Vera Veronica Victor Victoria Vijay Vincent Viola Virginia Vladimir Walter Wang
    Warren Wayne Wei Wendy Wilhelm William Wolfgang Xavier Yan Yasmin Yuki Yuri Yusuf Yvonne Zachary Zoe Zhang
    """
)
# These are also words: alone, they are names only where the text says so.
DOUBTFUL_GIVEN = _set(
    """
    August Bill Chen Christian Constance Daisy Frank Grace Guy Iris Jack Jan Jay Jean Jesus Jun Kim Lea Lily Max
    Mark Miles Morgan Nelson Ray Robin Rosa Rosemary Ross Sid Stella Sue Victor Victoria Virginia Viola Wang Wei Yan
    Zhang Florence Milan Sydney Jackson Lewis Scott Stanley Russell Warren Austin Ada Ed Duncan Craig Gordon Howard
    Kelly
    """
)
HONORIFICS = _set(
    """
    Mr Mrs Ms Miss Mx Dr Prof Professor Doctor Sir Dame Lady Lord Madam King Queen Prince Princess Emperor Empress
    Pope Saint President Chancellor Senator Governor Mayor Minister Ambassador Judge Justice Captain Colonel General
    Major Lieutenant Sergeant Admiral Commander Inspector Detective Officer Father Sister Brother Bishop Archbishop
    Cardinal Reverend Rev Rabbi Imam Sheikh Sultan Duke Duchess Earl Count Countess Baron Baroness Gen Sen Rep Lt
    Col Capt Sgt Gov Hon Uncle Aunt Auntie Grandma Grandpa Coach Chairman Chairwoman Director Engineer Nurse
    Councillor Congressman Congresswoman CEO CTO CFO COO CIO Tsar Czar
    """
)
# Titles that stay part of a name, because the name is short without them.
KEPT_HONORIFICS = _set(
    "King Queen Prince Princess Emperor Empress Pope Saint Lord Lady Duke Duchess Earl Count Baron Sultan"
)
ROLES = _set(
    """
    president chancellor minister mayor governor senator director manager engineer developer founder cofounder
    co-founder chairman chairwoman chair ceo cto cfo coo cio secretary professor teacher author writer novelist poet
    composer singer songwriter musician guitarist drummer pianist actor actress filmmaker producer screenwriter
    painter sculptor architect artist photographer scientist physicist chemist biologist mathematician philosopher
    historian economist journalist lawyer judge officer captain coach player footballer striker goalkeeper colleague
    friend boss roommate neighbor neighbour partner wife husband son daughter brother sister mother father mom dad
    mum uncle aunt cousin nephew niece grandmother grandfather girlfriend boyfriend fiancé fiancee doctor dentist
    nurse therapist king queen emperor prince princess politician businessman businesswoman entrepreneur activist
    model dancer chef designer analyst consultant assistant inventor explorer general admiral bishop saint student
    intern mentor
    """
)
ORGANIZATION_ENDS = _set(
    """
    Inc Corp Corporation Ltd Limited LLC LLP PLC GmbH AG SA NV Co Company Companies Group Holdings Bank Bancorp
    University Universität Université Universidad College Institute Academy School Association Federation Foundation
    Society Agency Ministry Department Committee Council Commission Party Union Club FC Church Hospital Clinic
    Orchestra Philharmonic Ensemble Band Records Studios Studio Pictures Entertainment Productions Airlines Airways
    Motors Technologies Technology Systems Labs Laboratories Laboratory Software Solutions Services Partners
    Associates Ventures Capital Insurance Press Publishing Publishers Books Times Post Journal Gazette Tribune
    Herald Court Parliament Senate Congress Assembly Army Navy Force Police Team Division Office Bureau Authority
    Board Trust Fund Museum Gallery Library Theatre Theater Center Centre Alliance League Organization Organisation
    Network Industries Pharmaceuticals Electronics Energy Logistics Consulting Brothers Bros Cooperative Initiative
    Consortium Observatory Regiment Brigade United Rovers Athletic Seminary Polytechnic
    """
)
ORGANIZATION_MIDDLES = _set("College University Institute Bank Hospital Ministry")
ORGANIZATION_STARTS = _set(
    """
    University Bank Ministry Department Institute College Academy School Bureau Office Association Federation
    Council Society Museum Church Court House Board Order Universidad Université Universität Banco Banque Centre
    Center
    """
)
PLACE_ENDS = _set(
    """
    City County River Lake Mountain Mountains Island Islands Street Road Avenue Boulevard Lane Drive Valley Park
    Province District Bay Sea Ocean Airport Station Bridge Square Village Town Township Beach Canyon Desert Forest
    Peninsula Coast Hills Hill Heights Falls Creek Glacier Gulf Strait Canal Harbor Harbour Castle Palace Cathedral
    Tower Temple Plaza Kingdom Republic Prefecture Region State Territory Peak Plateau Basin Reservoir Cemetery
    Stadium Arena
    """
)
PLACE_STARTS = _set(
    "Lake Mount Mt Cape Fort Ft Port San Santa Los Las El Rio Isle Gulf City Republic Kingdom Bay Sea Straits State"
)
WORK_ENDS = _set("Symphony Sonata Concerto Trilogy Saga")

PLACES = _lines(
    """
    Afghanistan, Albania, Algeria, Argentina, Armenia, Australia, Austria, Azerbaijan, Bangladesh, Belarus, Belgium,
    Bolivia, Bosnia, Brazil, Bulgaria, Cambodia, Cameroon, Canada, Chile, China, Colombia, Croatia, Cuba, Cyprus,
    Czechoslovakia, Czechia, Denmark, Ecuador, Egypt, England, Estonia, Ethiopia, Europe, Asia, Africa,
    North America, South America, Antarctica, Finland, France, Georgia, Germany, Ghana, Greece, Greenland,
    Guatemala, Haiti, Honduras, Hungary, Iceland, India, Indonesia, Iran, Iraq, Ireland, Northern Ireland, Israel,
    Italy, Jamaica, Japan, Jordan, Kazakhstan, Kenya, Korea, South Korea, North Korea, Kosovo, Kuwait, Laos, Latvia,
    Lebanon, Liberia, Libya, Lithuania, Luxembourg, Madagascar, Malaysia, Malta, Mexico, Moldova, Mongolia,
    Montenegro, Morocco, Mozambique, Myanmar, Namibia, Nepal, Netherlands, New Zealand, Nicaragua, Nigeria, Norway,
    Pakistan, Palestine, Panama, Paraguay, Peru, Philippines, Poland, Portugal, Qatar, Romania, Russia, Rwanda,
    Saudi Arabia, Scotland, Senegal, Serbia, Singapore, Slovakia, Slovenia, Somalia, South Africa, Soviet Union,
    Spain, Sri Lanka, Sudan, Sweden, Switzerland, Syria, Taiwan, Tanzania, Thailand, Tunisia, Turkey, Uganda,
    Ukraine, United Arab Emirates, United Kingdom, United States, United States of America, Uruguay, Uzbekistan,
    Venezuela, Vietnam, Wales, Yemen, Zambia, Zimbabwe, USA, UK, U.S., U.S.A., U.K., US, EU, UAE, USSR, Britain,
    Great Britain, Alabama, Alaska, Arizona, Arkansas, California, Colorado, Connecticut, Delaware, Florida, Hawaii,
    Idaho, Illinois, Indiana, Iowa, Kansas, Kentucky, Louisiana, Maine, Maryland, Massachusetts, Michigan,
    Minnesota, Mississippi, Missouri, Montana, Nebraska, Nevada, New Hampshire, New Jersey, New Mexico, New York,
    North Carolina, North Dakota, Ohio, Oklahoma, Oregon, Pennsylvania, Rhode Island, South Carolina, South Dakota,
    Tennessee, Texas, Utah, Vermont, Virginia, Washington, West Virginia, Wisconsin, Wyoming, Ontario, Quebec,
    British Columbia, Alberta, Bavaria, Catalonia, Normandy, Tuscany, Amsterdam, Athens, Atlanta, Auckland, Austin,
    Baghdad, Bangkok, Barcelona, Basel, Beijing, Beirut, Belfast, Belgrade, Bergen, Berlin, Bern, Birmingham,
    Bogotá, Bologna, Bombay, Boston, Bratislava, Brisbane, Bristol, Brooklyn, Brussels, Bucharest, Budapest,
    Buenos Aires, Cairo, Calcutta, Cambridge, Cape Town, Cardiff, Chengdu, Chicago, Cologne, Copenhagen, Dallas,
    Damascus, Delhi, New Delhi, Denver, Detroit, Dhaka, Doha, Dresden, Dubai, Dublin, Durham, Düsseldorf, Edinburgh,
    Florence, Frankfurt, Geneva, Genoa, Ghent, Glasgow, Gothenburg, Granada, Guangzhou, Hamburg, Hangzhou, Hanoi,
    Hanover, Havana, Helsinki, Hiroshima, Hollywood, Hong Kong, Honolulu, Houston, Istanbul, Jakarta, Jerusalem,
    Johannesburg, Kabul, Karachi, Kraków, Krakow, Kyiv, Kiev, Kyoto, Lagos, Lahore, Las Vegas, Leeds, Leipzig, Lima,
    Lisbon, Liverpool, London, Los Angeles, Lyon, Lyons, Madrid, Manchester, Manhattan, Manila, Marseille,
    Melbourne, Memphis, Miami, Milan, Minneapolis, Montreal, Moscow, Mumbai, Munich, Nairobi, Nanjing, Naples,
    Nashville, New Orleans, New York City, Nice, Nuremberg, Osaka, Oslo, Ottawa, Oxford, Palermo, Paris,
    Philadelphia, Phoenix, Pittsburgh, Porto, Portland, Prague, Princeton, Queens, Rio de Janeiro, Riyadh, Rome,
    Rotterdam, Saigon, Salzburg, San Diego, San Francisco, Santiago, São Paulo, Sao Paulo, Sarajevo, Seattle, Seoul,
    Seville, Shanghai, Sheffield, Shenzhen, Sofia, St. Petersburg, Saint Petersburg, Stockholm, Strasbourg,
    Stuttgart, Sydney, Taipei, Tallinn, Tampa, Tehran, Tel Aviv, Tokyo, Toronto, Toulouse, Tunis, Turin, Utrecht,
    Valencia, Vancouver, Venice, Vienna, Vilnius, Warsaw, Wellington, Wuhan, Xi'an, Yokohama, Zagreb, Zurich,
    Zürich, Silicon Valley, Middle East, Washington D.C., Washington DC
    """
)
ORGANIZATIONS = _lines(
    """
    Google, Microsoft, Apple, Amazon, Facebook, Meta, Netflix, IBM, Intel, AMD, NVIDIA, Nvidia, Oracle, SAP,
    Siemens, Bosch, Toyota, Honda, Volkswagen, BMW, Tesla, Boeing, Airbus, Samsung, Sony, Nokia, Ericsson, Cisco,
    Dell, HP, Adobe, Salesforce, Uber, Airbnb, Spotify, Twitter, LinkedIn, PayPal, Stripe, OpenAI, Anthropic,
    DeepMind, Huawei, Alibaba, Tencent, ByteDance, Baidu, Xiaomi, Lenovo, Walmart, IKEA, Nestlé, Unilever, Pfizer,
    Novartis, Roche, Disney, Pixar, Warner, Paramount, Universal Pictures, MGM, BBC, CNN, NBC, CBS, ABC, HBO, ITV,
    NASA, ESA, CERN, UNESCO, UNICEF, NATO, WHO, WTO, IMF, OECD, OPEC, FBI, CIA, NSA, FDA, SEC, FIFA, UEFA, NBA, NFL,
    MIT, UCLA, ETH Zurich, Harvard, Stanford, Yale, United Nations, European Union, World Bank, Red Cross,
    Greenpeace, Interpol, Reuters, Bloomberg, Shell, Exxon, Chevron, Intuit, Zoom, Starbucks, McDonald's, Target,
    Nike, Adidas, Lufthansa, DHL, FedEx, Deloitte, KPMG, Accenture, McKinsey, Goldman Sachs, JPMorgan, Barclays,
    HSBC, UBS, Visa, Mastercard, Parliament, Congress, Pentagon, Kremlin, Vatican
    """
)
TECHNOLOGIES = _lines(
    """
    Python, Java, JavaScript, TypeScript, Rust, Golang, Kotlin, Scala, Haskell, Perl, Ruby, PHP, C++, C#, COBOL,
    Fortran, PostgreSQL, Postgres, MySQL, MariaDB, SQLite, MongoDB, Redis, Cassandra, Elasticsearch, OpenSearch,
    Kafka, Apache Kafka, RabbitMQ, Docker, Kubernetes, Helm, Terraform, Ansible, Jenkins, GitHub, GitLab, Git,
    Linux, Ubuntu, Debian, Windows, macOS, iOS, Android, Chrome, Firefox, Safari, React, Angular, Vue, Svelte,
    Node.js, Django, Flask, FastAPI, Rails, Spring Boot, Spring, TensorFlow, PyTorch, NumPy, Pandas, Spark,
    Apache Spark, Hadoop, Flink, Airflow, Grafana, Prometheus, Nginx, NGINX, Apache, Envoy, Istio, GraphQL, gRPC,
    OAuth, OpenAPI, WebSocket, Bluetooth, Ethernet, Wi-Fi, WiFi, Excel, PowerPoint, Outlook, Slack, Jira,
    Confluence, Notion, Trello, Figma, Photoshop, Snowflake, BigQuery, Redshift, DynamoDB, Lambda, AWS, Azure, GCP,
    Vault, Consul, Celery, Gunicorn, Vim, Emacs, VS Code, Jupyter, Markdown, LaTeX, ChatGPT, GPT-4, Claude, Gemini,
    Llama, BERT, pgvector, Langfuse, LangChain, LangGraph, iPhone, iPad, MacBook, PlayStation, Xbox, Kindle,
    WhatsApp, Instagram, YouTube, TikTok, Gmail, Bitcoin, Ethereum, TCP, UDP, SSH, TLS, CUDA, OpenSSL, systemd, Bash
    """
)
DEMONYMS = _set(
    """
    American British English French German Italian Spanish Portuguese Dutch Belgian Swiss Austrian Danish Swedish
    Norwegian Finnish Icelandic Irish Scottish Welsh Polish Czech Slovak Hungarian Romanian Bulgarian Serbian
    Croatian Slovenian Bosnian Greek Turkish Russian Ukrainian Soviet Chinese Japanese Korean Vietnamese Thai Indian
    Pakistani Bengali Indonesian Malaysian Filipino Australian Canadian Mexican Brazilian Argentine Argentinian
    Chilean Colombian Peruvian Venezuelan Cuban Egyptian Moroccan Algerian Tunisian Nigerian Kenyan Ethiopian
    Israeli Palestinian Lebanese Syrian Iraqi Iranian Persian Saudi Arab Arabic African Asian European Latin Western
    Eastern Northern Southern Christian Muslim Islamic Jewish Catholic Protestant Orthodox Buddhist Hindu Roman
    Byzantine Ottoman Victorian Mandarin Cantonese Hindi Urdu Tamil Telugu Malayalam Hebrew Bollywood Americans
    Germans Russians Italians Australians Canadians Europeans Christians Muslims Jews Hindus Catholics Democrats
    Republicans Democrat Republican Democratic Americas Caribbean Scandinavian Nazi Nazis
    """
)
DATES = _set(
    """
    January February March April May June July August September October November December Jan Feb Mar Apr Jun Jul
    Aug Sep Sept Oct Nov Dec Monday Tuesday Wednesday Thursday Friday Saturday Sunday Mon Tue Wed Thu Fri Sat Sun
    Christmas Easter Ramadan Thanksgiving Halloween AD BC BCE CE AM PM GMT UTC CET EST PST Q1 Q2 Q3 Q4 H1 H2
    """
)
ACRONYM_STOPS = _set(
    """
    OK TODO FIXME NOTE WARNING FAQ PDF ID IDs API APIs URL URLs HTTP HTTPS JSON XML HTML CSS CSV SQL UI UX CLI CPU
    GPU RAM SSD USB CEO CTO CFO COO CIO VP HR PR IT QA AI ML TV DVD CD DNA RNA GDP KPI ROI B2B PTO RSVP ASAP FYI BTW
    LOL OMG IMO IMHO TBD TBA ETA DIY PS NB AKA EG IE VS DOI ISBN ISSN MB GB TB KB KM KG CM MM HZ MHZ USD EUR GBP CNY
    RGB II III IV VI VII VIII IX XI XII MVP PhD BA MA BSc MSc MBA SLA IP OS PC VM SDK IDE REST SOAP CRUD ORM PR PRs
    MR MRs SMS GPS LED ATM GET POST PUT DELETE PATCH HEAD SELECT INSERT UPDATE FROM WHERE AND OR NOT NULL TRUE FALSE
    ON IN IF THEN ELSE END YES NO OOM
    """
)
# Words that never begin or end a name, wherever they stand.
FUNCTION_WORDS = _set(
    """
    a an the i im ive id ill you youre we were they he she it its this that these those there here my your our his
    her their who whom whose what which when where why how if then else so but and or nor yet for as at by in on of
    to from with without within into onto over under between among against about above below before after during
    since until while although though because unless whereas whether once also however moreover furthermore
    therefore thus hence otherwise meanwhile nevertheless nonetheless instead besides additionally finally firstly
    secondly first second third last next then now today tomorrow yesterday soon later recently currently previously
    originally eventually sometimes often usually never always maybe perhaps please yes no not only just even still
    again all any both each every few many most much several some such other another same more less one two three
    four five six seven eight nine ten do does did done dont didnt doesnt is are was been being am be has have had
    will would can could should may might must shall let lets hey hi hello thanks thank wow yeah yep ok okay oh well
    sure great good nice sorry congrats haha dear best according despite like unlike per via than too very upon
    across along around behind beyond near off out up down through toward towards except plus et al etc ago far ever
    already almost use used using based see note both either neither oh omg lol
    """
)
# Of these, words that can begin a name in the middle of a sentence: "The Great Gatsby".
SOFT_WORDS = _set(
    """
    great good nice best dear first second third last next two three four five six seven eight nine ten one few lost
    little own same more less most many all no not now then there here up down out off over under above beyond near
    far ever always
    """
)
IMPERATIVES = _set(
    """
    ask tell call email contact visit meet see join follow use run start stop open close install configure deploy
    upgrade update enable disable check click press select choose set add remove delete create make build test try
    read write send review schedule invite remind order buy book watch remember consider compare import export
    migrate connect restart
    """
)
# Words before a number, which is then no part of a name.
NUMBERED = _set(
    """
    chapter section figure fig table page pages part step volume vol issue item line version level phase appendix
    exhibit room gate unit day week month year season episode act scene article note no number round game grade
    class question
    """
)
