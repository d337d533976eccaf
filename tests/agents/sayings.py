# ruff: noqa: RUF001 - Chinese has signs of its own
"""What users say, by whether it is of lasting use. `HELD_OUT` is for measuring only: no rule was made to fit it."""

LASTING = """\
I'm allergic to peanuts.
I live in Berlin with my two daughters.
My name is Ann Walker.
I work as a nurse at the university hospital.
I prefer tea over coffee.
My wife's name is Sofia.
I've been vegetarian since 2015.
I don't eat pork.
I moved to Lisbon last year.
My birthday is on March 3.
I play the cello in an amateur orchestra.
I always fly with a window seat.
We have a golden retriever called Rex.
I hate getting phone calls in the morning.
I was born in Nairobi.
My mother speaks only Portuguese
I use Python 3.11 and PostgreSQL at work.
I'm a big fan of Arsenal.
Our office is on the fourth floor.
I got promoted to team lead today!
I'm going to be a father in May.
I want to learn Japanese.
I can't drink milk, it makes me sick.
Please remember that my locker code is 4711.
Remember: I take my coffee black.
Call me Max, not Maximilian.
Always answer me in French.
From now on, send invoices to my work address.
I studied physics in Vienna and graduated in 2009.
My favourite colour is green.
I have diabetes.
I'm good at chess.
I adopted a cat yesterday.
I graduated from law school two weeks ago.
Keep in mind that I am colour-blind.
我对花生过敏。
我住在上海浦东。
我叫李明，今年三十二岁。
我喜欢喝绿茶，不喜欢咖啡。
我是一名小学老师
我太太是广东人。
我女儿今年上三年级。
我不吃辣。
我每天早上六点跑步。
我在一家银行工作了十年。
请记住，我的生日是五月八号。
记住我只用苹果手机。
我去年搬到了成都。
我们家养了两只猫。
以后请叫我小王。
以后都用中文回答我。
我最喜欢的球队是曼联。
我有高血压，不能吃太咸的东西。
我打算明年考研究生。
我妈妈住在南京。
我会说法语和德语。
我讨厌下雨天
我的英文名是Kevin。
别忘了我对海鲜过敏。
我大学学的是计算机专业。
我从来不坐靠窗的位置。""".splitlines()

PASSING = """\
Hello!
Hi there, how are you?
Thanks a lot, that helped.
Thank you so much for your help!
Good morning
ok
Yes, please.
No.
Sure, sounds good.
What time is it in Tokyo?
Where is my parcel?
Can you translate this into German for me
How do I reset my password?
Do you remember my name?
what do I need to bring to the appointment
Show me my last three orders.
Please cancel my subscription.
Book a table for two at seven.
Tell me a joke.
Write a poem about my dog.
Help me with my homework.
I need you to check my invoice.
I'd like to return these shoes.
I want to know when my order arrives.
I want to cancel my order.
Let's start over.
I'm tired right now.
I'm hungry.
I'm on my way home.
I'm looking for a birthday present.
I'm having trouble with my login.
My order hasn't arrived yet.
My screen is black and it doesn't start.
I don't know.
I think so too.
I see, that makes sense.
I agree with you.
I'm not sure what you mean.
It's raining outside.
The server is down again.
That's great news!
Haha, nice one.
def add(a, b): return a + b
Traceback (most recent call last):
2026-11-01 12:00:03 ERROR worker failed: connection refused
The capital of France is Paris.
Never mind.
I'm just testing this.
Don't forget to send me the report.
Remember to wake me at seven.
Bye, see you tomorrow!
I'll be back in five minutes.
One moment, I have to answer the door.
If I cancel now, do I get my money back?
I was wondering if you could help me.
I got an error when I clicked the button.
你好！
谢谢你的帮助。
早上好
好的
明天天气怎么样？
我的包裹到哪里了？
帮我查一下订单。
请把这段话翻译成英文。
给我讲个笑话吧
我现在很累。
我饿了
我想退掉这双鞋。
我想知道什么时候发货。
我不知道。
我觉得可以。
我刚才点错了。
今天下雨了。
哈哈，真有意思。
你能帮我订一张票吗
服务器又挂了。
告诉我你的名字
记得明天提醒我开会。
再见，明天聊！
我正在找一份礼物。
等我一下，我马上回来。
我的订单还没到。
没关系
法国的首都是巴黎。""".splitlines()

HELD_OUT_LASTING = """\
I run a small bakery in Leeds.
My brother Tom is a pilot.
I can't stand coriander.
I'm left-handed.
We got married in 2018 in Rome.
I usually work night shifts.
My doctor told me to avoid salt.
I drive an electric Volvo.
I quit smoking three years ago.
I'm learning to play the guitar.
My son starts school in September.
I speak Spanish and a bit of Turkish.
Please don't call me before ten, I sleep late.
Never use emojis when you write to me.
I'd rather get emails than phone calls.
I lost my job in spring and I'm freelancing since.
Just so you know, I'm deaf in one ear.
I own two horses.
我姓陈，你可以叫我老陈。
我老公在深圳上班。
我是素食主义者。
我习惯晚上工作。
我家有三口人。
我上个月刚买了房子。
我比较喜欢简短的回答。
我儿子对牛奶过敏。
我退休前是医生。
我怕狗。
我的车是特斯拉。
我周末一般去爬山。""".splitlines()

HELD_OUT_PASSING = """\
Hey
Good evening, is anyone there?
Perfect, thanks!
Never heard of it.
Could you summarise this article
Which one is cheaper?
Find me a hotel near the station.
Add milk to the shopping list.
Stop.
I'd like a refund, please.
I need a new password.
I want to talk to a human.
I'm waiting for your answer.
I'm a bit confused by your answer.
My app keeps crashing.
My internet is slow today.
I guess you are right.
I didn't get that.
You are funny.
This is not what I asked for.
The train leaves at nine.
SELECT * FROM orders WHERE id = 7;
That doesn't work.
I'll try that.
Make it shorter.
Why is my bill so high
See you later
Wow, amazing!
您好，请问在吗？
辛苦了
可以的，就这样。
为什么我的账单这么高
查一下我的余额
我先去吃饭了。
我看一下。
我同意。
我需要一份发票。
我登录不上去了。
这个不对。
再说一遍
帮我写一封邮件
今天真热啊
听不懂
稍等""".splitlines()
