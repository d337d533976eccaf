"""Finds names in Chinese text by rules: brackets of titles, endings of organizations and places, surnames, and the words around.

Chinese marks no word boundaries, so a name is taken where a sign, a stop word or a known word bounds it.
"""

import re
from collections.abc import Iterator

from holdfast.memory.graph.entity import HAN, EntityType, Mention


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SURNAMES = (
    "习王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛"
    "闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤温康施文牛樊葛邢安齐易乔伍庞颜倪庄聂章鲁岳翟殷詹申欧耿关兰焦俞左柳甘祝包宁尚符舒阮柯纪梅童凌毕单季裴霍涂成苗谷"
    "盛曲翁冉骆蓝路游辛靳管柴蒙鲍华喻祁蒲房滕屈饶解牟艾尤阳时穆农司卓古吉缪简车项连芦麦褚娄窦戚岑景党宫费卜冷晏席卫米柏宗瞿桂全佟应臧闵苟邬边卞姬师和仇栾隋商刁沙荣巫寇桑郎甄丛仲虞敖巩明佘池查麻苑迟邝"
    "張劉陳楊黃趙吳孫馬羅鄭謝許韓馮鄧蕭葉蘇魏呂盧鍾譚陸範賈鄒龍賀顧龔邵萬錢嚴湯齊喬龐顏聶魯歐關蘭紀畢單駱藍遊"
)
_DOUBLE_SURNAMES = "欧阳|司马|诸葛|上官|司徒|东方|夏侯|皇甫|尉迟|公孙|慕容|令狐|长孙|宇文|端木|歐陽|諸葛"
# Characters of given names. A name of rarer characters is found where its context is clear.
_GIVEN = (
    "伟芳娜秀英敏静丽强磊军洋勇艳杰娟涛明超兰霞平刚桂华玉萍红玲芬燕彬建国文志海波宁宇鹏飞浩亮凯健俊帆雪云莉婷琳慧颖倩佳欣怡悦琪梦瑶雨涵子轩梓晨浩然博睿思远天翔一鸣嘉豪"
    "家俊德成东辉林峰龙虎斌洪春生梅荣新义信仁礼智光耀正忠孝永福贵富昌盛兴旺庆祥和顺安康乐喜晓小大长少卿如意珍珠宝金银铜山川河湖江岩石松柏竹菊莲荷蓉薇蕾蓓芸茜芝苗萌菲蔓"
    "立民学武振邦维世界良才先元启泽润浩淼清源泉溪洁净冰凌霜露阳晖旭昊昕晴晶星辰月夜秋冬夏香馨雅韵诗琴书画心爱恩慈惠真善美若彤彩虹锦绣绮丹青白素紫蓝翠碧琼瑛瑜琦璐璇珊瑞"
    "骏驰骁骥腾跃进达通展鹤鸿雁凤凰燕莺琨坤乾震雷霆迅捷敬恭谦诚毅恒坚定刚中华夏汉唐宋明清伯仲叔季孟之其以为克广宏伦尚贤哲彦圣淑贞娴婉柔媛姗妍娇娥妮婧嫣瑾瑗可人依依晚"
    "沛沐沁汐浚涵渊淳湘滢潇澜炎炜烨煜焕熙燃灿焱林森桐楠榕樱桃柳枫杨森木禾秉秋科程稷穗稼丰登奕弈弘张彰徵德循御微征彻彪彭形影律衡裕祖宗宪实宜家宽宾寅寒察寸封将尉小尔尧"
    "蔚蓬蕴藏艺芃苒茂范茹荃荔莎莹萱葳蒙蓝薰藤虹蝶融行衍裳观言谊谷豫象贝赋赞越超路辅运逸遥道遐郁采野钊钧铁铃铭锋锐镇镜闻闽阔隆隽雄雯霄霏霓青靖静音韬顶项领颜飒驹高魁鲁鸣鹰麒麟黎齐"
    "劲力功加勋勤包匡升华卓南卫印厚原双发叶司向吉同君吟呈周咏哲商善嘉器四回团固圆城基堂墨士壮复多太夫奇奎好妙姣威孔存孜季学孺宣容密富寒寿尊岚峻崇巍川州工左己巧布希帅常干年并应度庭廷建开异引"
    "鑫淼磊晶垚犇羽翰翼耘聪肖胜能臣自舒航舟船良色芊芮苏英茵莘菁萧蕊艾薪藜谨豪赫跃轶辰边进逊邦邵郎都酉重量锡镕长门闰阁陶随难霖非面革韦顺颂风食首骄鹭龄羲曦曼曾朋杭松枝柯柱标栋根格桑梁梓棋棠楚楷榆毓民"
)
_PERSON_TITLES = (
    "先生|女士|小姐|教授|博士|医生|老师|院士|主任|经理|总经理|总监|总裁|董事长|主席|总统|总理|部长|省长|市长|县长|局长|校长|院长|所长|处长|科长|书记|律师|记者|教练|同学|同志|"
    "工程师|师傅|阿姨|叔叔|大夫|将军|法官|导演|队长|班长|厂长|行长|社长|秘书长|总|哥|姐"
)
_ROLES = (
    "总裁|总经理|经理|董事长|首席执行官|首席技术官|首席财务官|创始人|联合创始人|教授|博士|医生|老师|主任|部长|省长|市长|局长|校长|院长|主席|总统|总理|书记|记者|作家|诗人|画家|歌手|演员|导演|编剧|"
    "工程师|设计师|律师|教练|队长|同事|朋友|同学|室友|妻子|丈夫|老婆|老公|儿子|女儿|父亲|母亲|爸爸|妈妈|哥哥|弟弟|姐姐|妹妹|舅舅|叔叔|阿姨|姑姑|表哥|表弟|表姐|表妹|男友|女友|男朋友|女朋友|邻居|老板|上司|领导|"
    "助理|秘书|负责人|联系人|发言人|客户|学者|科学家|物理学家|数学家|企业家|皇帝|将军|选手|球员|运动员|姓名|作者|译者|名叫|叫做|叫|名为"
)
_PERSON_VERBS = (
    "说|表示|认为|指出|介绍|告诉|强调|透露|称|写道|回答|问道|担任|出任|就任|当选|获得|获|荣获|出生|生于|毕业|就读|逝世|去世|病逝|结婚|加入|离开|创立|创办|创建|执导|主演|饰演|出演|撰写|著|编写|负责|主持|宣布|提出|发现|发明|"
    "改编|扮演|辅佐|建立|率|领导|推荐|送给|娶|嫁|带|买|写|去世|喜欢|住在|住|在|是|和|与|及|任|于|的|、|，|。|；|：|（|\\(|,|\\s|来自|来|去|从|今年|昨天|明天|给|对|向|把|被|将|也|都|已|曾|正|会|想|要|有|为|等|因|参加|邀请|打电话|发来|拥有|率领|接替|$"
)
# A name of a person begins after one of these, or after another sign, unless its context on the right is clear by itself.
_BEFORE_PERSON = frozenset("是由和与及跟同给对向请找让被把为的约问听娶据经而当在时后曾了日年月天晚像如受")
_BEFORE_PERSON_LONG = (
    *(
        "任命",
        "邀请",
        "采访",
        "联系",
        "认识",
        "遇见",
        "遇到",
        "见到",
        "嫁给",
        "师从",
        "以及",
        "时候",
        "感谢",
        "恭喜",
        "受到",
    ),
    *_ROLES.split("|"),
)
_AFTER_ROLE = tuple(role + sign for role in _ROLES.split("|") for sign in ("", "是", "：", ":", "，"))
_NO_NAME = _set("""
    高兴 方便 马上 王国 周末 周日 周一 周二 周三 周四 周五 周六 周围 周期 周年 白色 金融 金额 金属 安全 安装 安排 安静 任何 任务 任意 任命 成为 成功 成立 成本 成绩 时间 时候 时代 方法 方面 方案 方式 方向 高度 高级
    高中 高考 高速 高达 高等 万一 万元 全部 全国 全球 全面 全年 全体 路上 路线 路由 车站 车辆 石油 石头 江南 江水 江湖 河流 田野 文化 文学 文件 文章 文档 文字 文本 文明 文艺 平时 平均 平台 关于 关系 关注 关键 关闭 易于
    包括 包含 包装 管理 管道 解决 解释 解析 游戏 游客 游泳 游玩 应该 应用 应当 应急 明天 明白 明确 明显 明年 和平 和谐 单位 单独 单元 单身 单词 单一 施工 施行 温度 温暖 康复 毕业 毕竟 温和 章节 顾客 顾问 施肥 武器 武术
    卫生 卫星 左右 甘肃 白天 白酒 黄金 黄色 黄河 江苏 江西 江浙 云南 马路 马达 牛奶 牛肉 羊肉 米饭 麦当 华为 华东 华北 华南 华人 华丽 华侨 商品 商业 商务 商店 商人 师傅 师范 连接 连续 连忙 项目 景点 景色 党员 党委 简单 简称 简历
    边界 曲线 曲目 查询 查看 查找 麻烦 古代 古老 吉林 连锁 冷静 全职 司机 司法 祝福 祝贺 申请 申报 向上 向前 齐全 文献 史料 史上 尚未 尚且 盛大 盛行 游览 余额 余下 何时 何况 何处 何人 白菜 程序 程度 常常 谢谢 许多 许可 向来 于是 于此 戴上 季节
    季度 龙头 凌晨 童年 童话 万里 钟头 钟声 梅花 雷达 雷电 叶子 叶片 石材 金牌 金色 银行 席位 荣获 荣誉 宗教 宗旨 房间 房屋 房产 宫殿 费用 时期 时刻 应对 全新 路径 路口 单价 成员 成都 成人 成果 成年 成长 成熟 和他 和我 和你 和她 向他 向我 向你 于他 周边 管辖 东方
    贺岁 舒服 舒适 康熙 乾隆 解放 解除 解答 麻将 沙发 沙漠 阳光 阳台 阳历 农村 农业 农民 农历 农场 蒙古 桂林 柳州 温州 梅州 常州 康德 计划 莫名 莫非 甘心 鲁迅 广州 高山 高铁 高温 高大 马来 马克 金山 白云 明星 明朝 宋朝 唐朝 唐代 宋代 明代 夏天 夏季 夏日 毛泽
    江山 方位 方言 方程 云计 陆续 陆地 胡同 胡说 胡子 龙虾 曾经 曾任 曾在 曾于 曾被 何以 林业 林木 梁山 于今 田径 安徽 连同 管道 关怀 关心 关联 温馨 万分 万物 万能 路面 路边 艾滋 时常 时任 时年 时而 盛产 成就 成分 成交 易用 易怒 相关 项链 应聘 应邀 金华 金黄
    宁波 宁夏 宁可 尤其 尤为 查出 党中 司令 师生 师资 古典 古城 全程 全家 全民 全长 全市 全省 全县 景区 景观 席卷 华盛 华尔 车间 游行 单曲 单车 关键 关机 关节 成份 容易 时光 时装 时尚 高于 高层 高手 高尔 文物 文人 文科 白人 白痴 包裹 包子 明智 明亮 向导 石化 石家 马德 马尔
    """)
_PLACES = (
    "罗马尼亚|保加利亚|匈牙利|捷克|斯洛伐克|塞尔维亚|克罗地亚|冰岛|爱尔兰|苏格兰|英格兰|威尔士|立陶宛|拉脱维亚|爱沙尼亚|白俄罗斯|哈萨克斯坦|乌兹别克斯坦|阿富汗|伊拉克|叙利亚|约旦|黎巴嫩|科威特|卡塔尔|也门|孟加拉国|斯里兰卡|尼泊尔|不丹|文莱|东帝汶|秘鲁|哥伦比亚|委内瑞拉|古巴|巴拿马|乌拉圭|尼日利亚|肯尼亚|埃塞俄比亚|坦桑尼亚|刚果|摩洛哥|阿尔及利亚|利比亚|突尼斯|苏丹|津巴布韦|布加勒斯特|布达佩斯|布拉格|华沙|基辅|雅典|里斯本|都柏林|爱丁堡|曼彻斯特|利物浦|剑桥|牛津|法兰克福|汉堡|苏黎世|哥本哈根|斯德哥尔摩|奥斯陆|赫尔辛基|伊斯坦布尔|耶路撒冷|雅加达|马尼拉|吉隆坡|河内|胡志明市|新德里|费城|休斯顿|底特律|迈阿密|蒙特利尔|里约热内卢|圣保罗|中国|美国|英国|法国|德国|日本|韩国|朝鲜|俄罗斯|苏联|印度|意大利|西班牙|葡萄牙|荷兰|比利时|瑞士|瑞典|挪威|芬兰|丹麦|奥地利|波兰|希腊|土耳其|埃及|南非|澳大利亚|新西兰|加拿大|墨西哥|巴西|阿根廷|智利|泰国|越南|"
    "新加坡|马来西亚|印度尼西亚|印尼|菲律宾|缅甸|柬埔寨|老挝|蒙古|伊朗|伊拉克|以色列|沙特阿拉伯|阿联酋|巴基斯坦|乌克兰|欧洲|亚洲|非洲|北美洲|南美洲|欧盟|"
    "北京|上海|天津|重庆|广州|深圳|杭州|南京|苏州|武汉|成都|西安|长沙|郑州|青岛|大连|厦门|宁波|无锡|济南|沈阳|哈尔滨|长春|昆明|贵阳|南宁|福州|合肥|南昌|石家庄|太原|兰州|西宁|银川|乌鲁木齐|拉萨|海口|三亚|珠海|"
    "东莞|佛山|温州|常州|徐州|扬州|绍兴|嘉兴|泉州|烟台|洛阳|桂林|丽江|大理|敦煌|香港|澳门|台湾|台北|高雄|台中|"
    "河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南|广东|海南|四川|贵州|云南|陕西|甘肃|青海|内蒙古|广西|西藏|宁夏|新疆|"
    "纽约|华盛顿|洛杉矶|旧金山|芝加哥|波士顿|西雅图|硅谷|伦敦|巴黎|柏林|慕尼黑|罗马|米兰|马德里|巴塞罗那|莫斯科|东京|大阪|京都|首尔|曼谷|悉尼|墨尔本|多伦多|温哥华|维也纳|日内瓦|阿姆斯特丹|布鲁塞尔|开罗|迪拜|孟买|"
    "长江|黄河|珠江|黄山|泰山|华山|长城|故宫|西湖|太湖|太平洋|大西洋|印度洋"
)
_ORGANIZATIONS = (
    "教育部|财政部|外交部|国防部|商务部|卫生部|科技部|工信部|公安部|司法部|交通部|民政部|华为|腾讯|阿里巴巴|百度|京东|字节跳动|美团|拼多多|小米|网易|新浪|搜狐|滴滴|联想|海尔|格力|比亚迪|蔚来|中兴|大疆|中国移动|中国电信|中国联通|中石油|中石化|国家电网|新华社|人民日报|央视|中央电视台|联合国|世界卫生组织|"
    "世界银行|北约|微软|谷歌|苹果公司|亚马逊公司|特斯拉|英特尔|英伟达|三星|索尼|丰田|本田|清华大学|北京大学|清华|北大|复旦|中科院|中国科学院|国务院|最高人民法院|科创板|中国银行|招商银行|工商银行|建设银行|农业银行"
)
_TECHNOLOGIES = "微信|支付宝|淘宝|抖音|钉钉|飞书|企业微信|鸿蒙|麒麟操作系统|比特币|北斗|北斗卫星导航系统"
_ORGANIZATION_ENDS = (
    "有限责任公司|股份有限公司|有限公司|分公司|子公司|公司|集团|大学|学院|银行|研究院|研究所|研究中心|科学院|医院|委员会|协会|学会|基金会|联合会|中学|小学|幼儿园|出版社|报社|杂志社|电视台|俱乐部|法院|检察院|博物馆|图书馆|"
    "美术馆|实验室|事务所|工作室|交易所|总局|管理局|公安局|教育局|教育部|财政部|外交部|国防部|技术部|市场部|销售部|人事部|财务部|研发部|法务部|采购部|运营部|行政部|产品部|客服部|"
    "委员會|大學|學院|銀行|醫院|協會|議會|议会|政府|证券|保险|乐团|酒店|餐厅|咖啡馆|书店|超市|航空|联盟|商会|党"
)
_PLACE_ENDS = "自治区|自治州|特别行政区|开发区|高新区|新区|省|市|县|區|区|镇|鎮|乡|村|州|岛|島|半岛|山脉|山|江|河|湖|海峡|海湾|机场|火车站|车站|地铁站|广场|公园|大道|路|街|街道|大桥|大厦|古城|寺|园区|科技园|小区"
_WEAK_PLACE_ENDS = frozenset("山江河湖路街州岛島村区區市镇鎮乡县省寺")
# Words that do not belong to a name: the name begins after the last of them.
_STOPS = re.compile(
    r"(?:位于|位於|来自|加入|收购|成立|创立|创办|创建|任职于|就职于|效力于|毕业于|就读于|同游|游览|登上|弟子|现任|时任|(?<!责)任(?!天)|出生于|生于|隶属于|属于|担任|前往|访问|参观|到达|离开|抵达|住在|搬到|坐落于|坐落在|成为|包括|以及|或者|还有|因为|所以|如果|但是|已经|正在|曾经|曾|"
    r"是|在|的|了|和|与|及|于|为|由|被|到|从|向|对|把|或|等|去|来|回|让|给|将|这|那|该|此|我|你|您|他|她|它|们|每|各|某|一家|一个|一所|一座|这家|那家|这个|那个|两家|多家|几家|该|本(?=公司|校|院|市|省)|贵(?=公司|校)|(?<!国)家(?!电|乐)|所|座|个|名|"
    r"经|经过|根据|按照|通过|随|据|向|进|出|过|着|并|且|而|但|不|没|没有|有|也|都|就|才|又|再|很|最|更|非常|叫|称|说|做|至|跨|沿|靠近|邻近|距离|连接|负责|主管|联系|"
    r"同事|朋友|同学|妻子|丈夫|儿子|女儿|妈妈|爸爸|哥哥|弟弟|姐姐|妹妹|老板|总裁|经理|教授|成员|员工|学生|今天|明天|昨天|后天|上周|下周|周末|去年|今年|明年|\d年|\d月|\d日|年|月|日|时|后|前(?!海)|(?<![集空高初])中(?![国央华山信兴石铁建粮科学医心银原])|上(?![海饶])|下|里(?![弄])|内(?!蒙)|"
    r"国有|民营|私立|公立|知名|著名|当地|附近|唯一|第一|首家|大型|小型|我们|他们|她们|公共|所有|任何|其他|相关|有关|全国|全球|许多|很多|一些|部分|其中|不同|主要|重要|现|原|前身|总部|设|投资|持有|控股|旗下|打车|坐车|开车|喜欢|想)"
)
_GENERIC = _set("""
    科技公司 互联网公司 软件公司 保险公司 上市公司 母公司 子公司 分公司 总公司 贸易公司 物流公司 建筑公司 外企 电影公司 制作公司 唱片公司 地方政府 中央政府 市政府 省政府 县政府 政府 集团公司 集团 大学 重点大学 综合大学 医学院 商学院 法学院 文学院 理学院 工学院
    商业银行 投资银行 中央银行 高中学 重点中学 城市 超市 股市 大城市 直辖市 地级市 县级市 省会城市 大都市 夜市 门市 上市 社区 地区 山区 郊区 市区 城区 景区 小区 校区 赛区 园区 战区 海区 灾区 住宅小区 生活小区 农村 乡村 渔村 山村 小镇 城镇 乡镇 公路 铁路 道路 马路 高速公路 网路 思路 一路 线路 电路 街 大街 步行街 高山 火山 登山 爬山 大山 江山 上山
    大江 小河 运河 长河 银河 江河 过河 大湖 群岛 小岛 海岛 半岛 研究中心 中心 服务中心 数据中心 火车站 汽车站 车站 网站 加油站 地铁站 国际机场 机场 公园 主题公园 动物园 植物园 校园 广场 客户服务部 本部 外部 内部 总部 全部 部 门市部 俱乐部 足球俱乐部 篮球俱乐部 董事会 委员会 专业委员会 常务委员会 协会 行业协会
    共产党 政党 执政党 在野党 同党 学院 小学 中学 国小 初中 医院 人民医院 大医院 中医院 实验室 国家重点实验室 重点实验室 研究所 研究院 出版社 报社 旅行社 事务所 律师事务所 会计师事务所 工作室 个人工作室 交易所 证券交易所 电视台 地方法院 法院 人民法院 图书馆 博物馆 美术馆 体育馆 酒店 五星级酒店 餐厅 西餐厅 中餐厅 咖啡馆 书店 保险 社会保险 医疗保险 养老保险 证券 航空 联盟 大厦 大桥 寺 城县 县 市 省 区 州 镇 乡 村
    双方公司 实验小学 实验中学 其他公司 甲方公司 乙方公司 新公司 老公司 大公司 小公司 外国公司 跨国公司 民办大学 名牌大学 教育部门 省份 知识产权法院 新区 开发区 高新区 科技园 自治区 特区 经济特区 特别行政区
    """)
_LONGEST_STEM = 14

_RUN = re.compile(rf"[{HAN}]+")
_TITLE = re.compile(
    r"《([^《》\n]{1,80})》|〈([^〈〉\n]{1,80})〉|「([^「」\n]{2,40})」|『([^『』\n]{2,40})』|\u201c([^\u201c\u201d\n]{2,30})\u201d"
)


def _by_first() -> dict[str, list[tuple[str, EntityType]]]:
    words: dict[str, EntityType] = {
        **dict.fromkeys(_PLACES.split("|"), "Place"),
        **dict.fromkeys(_TECHNOLOGIES.split("|"), "Technology"),
        **dict.fromkeys(_ORGANIZATIONS.split("|"), "Organization"),
    }
    found: dict[str, list[tuple[str, EntityType]]] = {}
    for word in sorted(words, key=len, reverse=True):
        found.setdefault(word[0], []).append((word, words[word]))
    return found


_KNOWN = _by_first()  # known names by their first character, the longest first
_KNOWN_FIRST = re.compile(f"[{''.join(_KNOWN)}]")
_ENDS = re.compile(rf"(?P<organization>{_ORGANIZATION_ENDS})|(?P<place>{_PLACE_ENDS})")
_STEM = re.compile(rf"[{HAN}A-Za-z0-9·]{{1,{_LONGEST_STEM}}}$")
_FOREIGN = re.compile(rf"[{HAN}]{{1,8}}(?:[·•‧][{HAN}A-Z]{{1,8}})+")
_FOREIGN_START = re.compile(
    rf"^(?:.*(?:{_ROLES}|是|由|和|与|及|跟|给|对|向|被|把|为|的|在|据|称|美国|英国|法国|德国|俄国|意大利|奥地利|波兰|苏联|加拿大|时任|总统|首相))(?=[{HAN}]{{1,5}}[·•‧])"
)
_FOREIGN_END = re.compile(
    r"(?:系列|说|表示|认为|指出|出生|生于|创立|创办|执导|主演|饰演|担任|发明|发现|的|是|在|和|与|于|为|写|著|任|获|宣布|领导|加入|提出|率领|撰写|逝世|去世|曾|将|也|先生|女士|教授|博士).*$"
)
_ALIAS = re.compile(
    r"(?:（|\(|，|,)?\s?(?:以下)?(?:简称为?|簡稱|又称为?|又稱|又名|也叫|亦称|亦作|俗称|别名|原名|曾用名|本名|艺名|笔名|全称|英文名|外号|绰号|旧称|古称)(?:为|是)?[：:]?\s?[“\"「《]?"
    rf"(?P<alias>[{HAN}A-Za-z0-9·. &-]{{1,20}}?)(?=[”\"」》）),，。；、;]|$)"
)
_LATIN_ALIAS = re.compile(
    r"[（(](?:英语：|英文：|英文名：?|英文名称：?|英語：)?(?P<alias>[A-Za-z][A-Za-z0-9.&' -]{1,40})[）),，]"
)
_SURNAME_SET = frozenset(_SURNAMES)
_GIVEN_SET = frozenset(_GIVEN)
_NICKNAMES = re.compile(
    rf"(?:(?<=[^{HAN}])|(?<=和|跟|给|叫|找|约|请|是|的)|^)(?P<name>(?:小|老|阿)[{_SURNAMES}])(?=(?:说|和|跟|在|是|的|来|去|喜欢|要|想|给|，|告诉|打|昨天|今天|明天|也|会|请|生日))"
)


def mentions(text: str) -> Iterator[Mention]:
    """Yield what a text names, the longest of overlapping names."""
    found: list[Mention] = []
    for match in _TITLE.finditer(text):
        content = next(group for group in match.groups() if group is not None)
        start = match.start() + 1
        if text[match.start()] in "《〈『":
            found.append(Mention(start, start + len(content), content, "Work"))
    known = list(_known(text))
    found += _ended(text, known)
    found += known
    found += _people(text)
    chosen = _longest(found)
    for mention in chosen:
        yield mention
        yield from _aliases(text, mention)


def _known(text: str) -> Iterator[Mention]:
    end = 0
    for match in _KNOWN_FIRST.finditer(text):
        start = match.start()
        if start >= end and (found := _known_at(text, start)) is not None:
            end = start + len(found[0])
            yield Mention(start, end, *found)


def _known_at(text: str, start: int) -> tuple[str, EntityType] | None:
    for name in _KNOWN.get(text[start : start + 1], ()):
        if text.startswith(name[0], start):
            return name
    return None


def _longest(found: list[Mention]) -> list[Mention]:
    chosen: list[Mention] = []
    for mention in sorted(found, key=lambda each: (each.start, -each.end)):
        if not chosen or mention.start >= chosen[-1].end:
            chosen.append(mention)
        elif mention.end - mention.start > chosen[-1].end - chosen[-1].start and mention.type != "Person":
            chosen[-1] = mention
    return chosen


def _ended(text: str, known_names: list[Mention]) -> Iterator[Mention]:
    """Yield organizations and places by their last characters."""
    known = {place for name in known_names for place in range(name.start, name.end)}
    for match in _ENDS.finditer(text):
        stem = _STEM.search(text, max(0, match.start() - _LONGEST_STEM), match.start())
        if stem is None:
            continue
        begin = stem.start()
        for stop in _STOPS.finditer(text, begin, match.start()):
            if stop.end() <= match.start() and stop.start() not in known:
                begin = stop.end()
        name = text[begin : match.end()]
        ending = match[0]
        length = match.start() - begin
        kind: EntityType = "Organization" if match["organization"] else "Place"
        if length < 1 or name in _GENERIC or name[0].isdigit():
            continue
        if kind == "Place":
            after = text[match.end() : match.end() + 1]
            part = length - (max(name.rfind(each, 0, length) for each in "省市县区州") + 1)
            if ending in _WEAK_PLACE_ENDS and (part > 5 or _is_inner(ending, after)):
                continue
            is_short = part == 1 and ending in _WEAK_PLACE_ENDS and begin not in known
            if is_short and (ending not in "州县" or text[begin - 1 : begin] not in {"到", "在", "于", "从"}):
                continue
        elif length < 2 and ending not in {"公司", "集团", "大学"}:
            continue
        yield Mention(begin, match.end(), name, kind)


_INNER = {
    "市": "场民值面",
    "区": "别域分间",
    "區": "別域",
    "路": "线由径过上人",
    "山": "水",
    "河": "流",
    "江": "山",
    "州": "",
    "村": "民庄",
    "县": "",
    "省": "略会得",
    "镇": "压静",
    "乡": "亲下土",
    "岛": "",
    "街": "头道上",
    "湖": "",
    "寺": "",
    "海": "外洋",
}


def _is_inner(ending: str, after: str) -> bool:
    """Whether the ending is only the first character of another word, such as 市 in 市场."""
    return bool(after) and after in _INNER.get(ending, "")


def _people(text: str) -> Iterator[Mention]:
    for match in _FOREIGN.finditer(text):
        name, begin = match[0], match.start()
        if (head := _FOREIGN_START.match(name)) is not None:
            name, begin = name[head.end() :], begin + head.end()
        last = max(name.rfind(each) for each in "·•‧")
        tail = _FOREIGN_END.sub("", name[last + 1 :])
        name = name[: last + 1] + tail
        if tail:
            yield Mention(begin, begin + len(name), name, "Person")
    for match in _INITIALS.finditer(text):
        yield Mention(match.start(), match.end(), match[0], "Person")
    place = 0
    while (match := _SURNAMED.search(text, place)) is not None:
        place = match.start() + 1
        name = _person_at(text, match.start())
        if name is not None:
            yield Mention(match.start(), match.start() + len(name), name, "Person")
            place = match.start() + len(name)
    for match in _NICKNAMES.finditer(text):
        yield Mention(match.start("name"), match.end("name"), match["name"], "Person")


_INITIALS = re.compile(rf"(?:[A-Z]\.)+[ ·]?[{HAN}]{{2,4}}?(?=[^{HAN}]|$|的|在|是|说|和)")
_SURNAMED = re.compile(rf"(?:{_DOUBLE_SURNAMES}|[{_SURNAMES}])(?=[{HAN}])")
_TITLES = re.compile(rf"(?:{_PERSON_TITLES})(?!体)")
_VERBS = re.compile(_PERSON_VERBS)
_STRONG_RIGHT = re.compile(
    r"(?:说|表示|认为|指出|介绍|告诉|强调|透露|写道|回答|担任|出任|当选|出生|生于|毕业|就读|逝世|去世|病逝|执导|主演|饰演|创立|创办|主持|（\d{4}|\(\d{4}|任|喜欢|住在|来自|加入|今年|著|的(?:妻子|丈夫|儿子|女儿|父亲|母亲|生日|电话|老板|同事|朋友))"
)
_NO_GIVEN = frozenset(
    "的了是在和与及于为由被到从向对把或等去来这那我你他她它们说不没有也都就很年月日时后前中上下里内个名家所座能会要想看听吃喝做问请给让叫将可过着得地用以其所此每各某最更"
)


def _person_at(text: str, start: int) -> str | None:
    """Return the name of a person that begins at `start`, if the text around it makes that clear."""
    surname = 2 if text[start : start + 2] in _DOUBLES else 1
    before = text[start - 1 : start]
    strong_left = text.endswith(_AFTER_ROLE, 0, start)
    has_left = (
        strong_left or not _is_han(before) or before in _BEFORE_PERSON or text.endswith(_BEFORE_PERSON_LONG, 0, start)
    )
    if has_left and (titled := _with_title(text, start, start + surname)) is not None:
        return titled
    if text[start + 1 : start + 2] in _NO_GIVEN or _known_at(text, start):
        return None
    best: str | None = None
    highest = 0
    for given in (2, 1):
        end = start + surname + given
        name = text[start:end]
        if len(name) < surname + given or not _is_han(name) or any(each in _NO_GIVEN for each in name[surname:]):
            continue
        if (name in _NO_NAME or name[:2] in _NO_NAME) and not (strong_left and given == 2):
            continue
        score = _score(text, name, end, surname, has_left=has_left, strong_left=strong_left)
        if score > highest:
            best, highest = name, score
    return best


def _score(text: str, name: str, end: int, surname: int, *, has_left: bool, strong_left: bool) -> int:
    """Return how clear it is that a name of a person ends at `end`; 0 if it is not."""
    titled = _TITLES.match(text, end) is not None
    strong_right = _STRONG_RIGHT.match(text, end) is not None
    verb = _VERBS.match(text, end) is not None or end >= len(text) or not _is_han(text[end])
    usual = all(each in _GIVEN_SET for each in name[surname:])
    given = len(name) - surname
    safe = name[0] in _SAFE_SURNAMES or (surname == 2 and (usual or given == 1))
    score = 2 * titled + 2 * strong_left + 2 * strong_right + has_left + verb + usual + safe
    score -= (name[0] in _WORD_SURNAMES and surname == 1) + (given == 1 and not verb)
    has_context = has_left or strong_right or titled
    is_clear = score >= 4 and has_context and (usual or verb or titled)
    is_likely = score >= 3 and has_left and (usual or safe) and (verb or (given == 2 and usual and safe))
    return score if is_clear or is_likely else 0


def _with_title(text: str, start: int, end: int) -> str | None:
    """Return a surname with its title, such as 黄医生."""
    title = _TITLES.match(text, end)
    if title is None or text[start:end] in _NO_TITLED:
        return None
    if len(title[0]) == 1 and text[end + 1 : end + 2] not in _AFTER_SHORT_TITLE:
        return None
    return text[start:end] + title[0]


_NO_TITLED = frozenset("和向于任应全时成明解查连单古大")
_AFTER_SHORT_TITLE = frozenset({"", "，", "。", "说", "的", "和", "在", "要", "、", "是"})
_DOUBLES = frozenset(_DOUBLE_SURNAMES.split("|"))
# Surnames that are also frequent words or parts of words.
_SAFE_SURNAMES = frozenset(
    "王李刘陈杨赵吴徐孙朱胡郭林罗郑梁谢宋唐韩冯邓曹彭潘董袁蒋蔡杜魏吕丁沈姚卢姜崔谭陆汪范贾邹熊孟秦阎薛侯邵龚习"
)
_WORD_SURNAMES = frozenset(
    "于任应全时成明解查连单古高方向和安文白金万路车石江田平关易包管游温康章施卫左项景党简边曲麻冷申尚盛何程常许季凌童钟梅雷叶席荣宗房宫费华阳农沙商师米麦牛马水严庄封强柏池"
)


def _is_han(text: str) -> bool:
    return bool(text) and all("\u4e00" <= each <= "\u9fff" for each in text)


def _aliases(text: str, mention: Mention) -> Iterator[Mention]:
    place = mention.end
    for sign in "》”」":
        if text.startswith(sign, place):
            place += 1
    match = _ALIAS.match(text, place) or _LATIN_ALIAS.match(text, place)
    if match is not None and (alias := match["alias"].strip(" 的")) and alias != mention.name:
        yield Mention(match.start("alias"), match.end("alias"), alias, mention.type, mention.name)
