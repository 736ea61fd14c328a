"""Questions that hardly any one knowledge base answers: many topics, everyday and technical, in two languages.

A base may well cover a few of them; who uses the list must bear that. Source: written for this purpose.
"""

_ENGLISH = """
How long should I boil eggs for a soft yolk?
What is the capital of Mongolia?
Why do cats purr when they sleep?
How do I remove red wine stains from a carpet?
Which planets have rings?
How many players are on a volleyball team?
What should I feed a baby hedgehog?
How do I tie a bow tie?
When did the Roman Empire fall?
What is the best way to train for a marathon?
How does photosynthesis work?
Who painted the Mona Lisa?
How can I get rid of ants in my kitchen?
What does the word serendipity mean?
How do I propagate a succulent from a leaf?
Why is the sky blue?
How much does a blue whale weigh?
What are the rules of offside in football?
How do I change a flat bicycle tyre?
Which vaccines do I need before travelling to Kenya?
How do I write a sonnet?
What time does the sun set in Oslo in June?
How long can cooked rice stay in the fridge?
What is the difference between a violin and a viola?
How do I knit a scarf for beginners?
Can dogs eat grapes?
How do volcanoes erupt?
What is a good gift for a tenth wedding anniversary?
How do I whiten my teeth at home?
What is the tallest mountain in South America?
How do I calculate the area of a trapezoid?
Who won the World Cup in 1998?
How do I stop hiccups?
What causes the tides?
How do I fold a fitted sheet?
Which wine goes with grilled salmon?
How do I grow tomatoes on a balcony?
What is the plot of Hamlet?
How do I play a G major chord on the guitar?
Why do leaves change colour in autumn?
How do I simulate the orbit of a comet in MATLAB?
How is a suspension bridge designed to resist wind?
What is the half-life of carbon-14?
How do I solder a headphone jack?
How do I balance the chemical equation for rusting iron?
What is the torque of a 12 volt wiper motor?
How do I set the white balance on a film camera?
How does an MRI scanner produce an image?
How do I prune an apple tree in winter?
How do I bleed the brakes of a motorcycle?
What is the melting point of tungsten?
How do I model a gear in AutoCAD?
How do jet engines produce thrust?
How do I insulate an attic?
What lens is best for photographing birds?
How is whisky distilled?
What is the sentence structure of Latin poetry?
How do I claim a tax deduction for a home office?
How do I treat a sprained ankle?
What is the offence of trespass in English law?
"""

_CHINESE = """
红烧肉怎么做才不腻？
蒙古国的首都是哪里？
猫睡觉时为什么会打呼噜？
地毯上的红酒渍怎么去除？
哪些行星有光环？
排球比赛每队上场几个人？
刚出生的小兔子该喂什么？
领带有哪几种打法？
唐朝是哪一年灭亡的？
怎样训练才能跑完全程马拉松？
光合作用的过程是什么？
《清明上河图》是谁画的？
厨房里的蚂蚁怎么除？
“守株待兔”这个成语是什么意思？
多肉植物叶插怎么生根？
天空为什么是蓝色的？
蓝鲸有多重？
足球越位规则怎么判定？
自行车轮胎破了怎么补？
去肯尼亚旅行要打哪些疫苗？
七言绝句的平仄怎么写？
哈尔滨冬天几点天黑？
剩米饭在冰箱里能放几天？
小提琴和中提琴有什么区别？
初学者怎么织围巾？
狗能不能吃葡萄？
火山为什么会喷发？
结婚十周年送什么礼物好？
牙齿发黄怎么美白？
南美洲最高的山峰是哪座？
梯形的面积怎么计算？
1998 年世界杯冠军是哪个国家？
打嗝不停有什么办法？
潮汐是怎么形成的？
阳台上怎么种番茄？
清蒸鲈鱼要蒸几分钟？
《红楼梦》里黛玉葬花是第几回？
吉他 C 和弦怎么按？
秋天树叶为什么会变黄？
孩子发烧要不要捂汗？
怎样用 MATLAB 模拟彗星轨道？
悬索桥怎样抵抗大风？
碳十四的半衰期是多少年？
耳机插头断了怎么焊接？
铁生锈的化学方程式怎么配平？
十二伏雨刮电机的扭矩是多少？
胶片相机怎么测光？
核磁共振是怎么成像的？
苹果树冬季怎么修剪？
摩托车刹车油怎么更换？
钨的熔点是多少度？
怎么用 AutoCAD 画齿轮？
喷气发动机是怎么产生推力的？
阁楼的保温层怎么铺？
拍鸟用什么镜头合适？
白酒是怎么蒸馏出来的？
拉丁语名词有几个格？
公积金贷款买房首付几成？
脚踝扭伤了该冷敷还是热敷？
邻居装修噪音扰民可以起诉吗？
"""

OFF_TOPIC = tuple(
    question
    for pair in zip(_ENGLISH.strip().splitlines(), _CHINESE.strip().splitlines(), strict=True)
    for question in pair
)
"""The questions, the two languages in turn, so that any beginning of the list holds both."""
