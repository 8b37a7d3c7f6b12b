"""Families of what people say: each row stands for a class of phrasings, with made-up members."""

from __future__ import annotations

import re

import pytest

import fidm
from fidm.grounding.base import UNCLEAR, Context, Segment
from fidm.grounding.route.program import parse_program
from fidm.grounding.route.replay import Terrain, replay
from fidm.grounding.rules.grammar import cut_clauses
from fidm.grounding.rules.grounder import Rules
from fidm.grounding.rules.language import Vocabulary, load_language, spellings

TERRAIN = Terrain(fidm.load_task("grocery"))
RULES = Rules()
RIGHT, DOWN = (2, 5, "right"), (6, 5, "down")
LEFT, UP = (9, 8, "left"), (5, 8, "up")
BESIDE_SNACKS, TOP, TOP_LEFT = (6, 14, "up"), (2, 8, "left"), (2, 5, "left")


def agrees(text, where, meant):
    """Whether what the grammar reads leads through the actions meant; what is unclear is doubted."""
    row, column, heading = where
    position = TERRAIN.position(row, column, heading)
    language = "yue" if re.search("[\u3400-\u9fff]", text) else "en"
    segment, context = Segment(1, text, (0,), (0,), (0,)), Context(TERRAIN, position, language=language)
    read = RULES.read(segment, context)
    if meant == UNCLEAR:
        return bool(read.draft.doubts) or not RULES.ground(segment, context).is_confident
    return read.base.done.actions == replay(parse_program(meant, TERRAIN.places), TERRAIN, position).actions


FAMILIES = {
    "a verb of getting without goods, beside a shelf": [
        ("let me get my glasses", UP, "NONE"),
        ("take your time, dear", UP, "NONE"),
        ("I'll have to get a chair, my knees are bad", UP, "NONE"),
        ("let me take my coat off first", UP, "NONE"),
        ("give me a minute to get my bearings", UP, "NONE"),
        ("hold on, I need to find my pen", UP, "NONE"),
        ("攞眼鏡先", UP, "NONE"),
        ("等我攞返副老花鏡先", UP, "NONE"),
        ("等我拎張紙巾出嚟", UP, "NONE"),
    ],
    "what points and says no more": [
        ("go there", LEFT, UNCLEAR),
        ("over there", LEFT, UNCLEAR),
        ("head for that", LEFT, UNCLEAR),
        ("a bit further", LEFT, UNCLEAR),
        ("go to the shelf at the end", LEFT, UNCLEAR),
        ("the stuff you wash clothes with, get that", LEFT, UNCLEAR),
        ("the meat or the eggs, one or the other", LEFT, UNCLEAR),
        ("隔籬嗰條", LEFT, UNCLEAR),
        ("去嗰邊", LEFT, UNCLEAR),
        ("去對面", LEFT, UNCLEAR),
        ("行多少少", LEFT, UNCLEAR),
    ],
    "compass words are the map's": [
        ("go north three squares", LEFT, "MOVE up 3"),
        ("head west as far as you can", LEFT, "MOVE left end"),
        ("turn east and go two", LEFT, "MOVE right 2"),
        ("south two", TOP_LEFT, "MOVE down 2"),
        ("向北行三格", LEFT, "MOVE up 3"),
        ("向西行到盡頭", LEFT, "MOVE left end"),
    ],
    "adverbs, ends and idioms": [
        ("go right up to the top", LEFT, "MOVE up end"),
        ("right down to the bottom", TOP_LEFT, "MOVE down end"),
        ("that's the end of that", LEFT, "NONE"),
        ("up as far as it'll go", LEFT, "MOVE up end"),
        ("all the way up", LEFT, "MOVE up end"),
        ("straight down till you can go no further", TOP, "MOVE down end"),
        ("left until you bump into something", LEFT, "MOVE left end"),
        ("go to the meat and pick it up", LEFT, "GOTO meat; BUY meat"),
        ("上到尾", LEFT, "MOVE up end"),
        ("向左行到冇路", LEFT, "MOVE left end"),
        ("一直上到冇得再上為止", LEFT, "MOVE up end"),
    ],
    "corrections, also after the assessor": [
        ("go left two\nno, three", LEFT, "MOVE left 3"),
        ("go up two\nno, up three", LEFT, "MOVE up 3"),
        ("left three, I mean right three", LEFT, "MOVE right 3"),
        ("up two. No, four it is", LEFT, "MOVE up 4"),
        ("turn left. No, right. Turn right and go three", LEFT, "TURN right; MOVE ahead 3"),
        ("get some bread. No, we've got bread. Get milk", LEFT, "BUY dairy"),
        ("go to the milk. No, not the milk, the eggs", LEFT, "GOTO egg_tofu"),
        ("up to the top. No, not all the way, only as far as the meat", LEFT, "MOVE up to meat"),
        ("上兩格，唔係，三格", LEFT, "MOVE up 3"),
        ("轉左，講錯，轉右，行三格", LEFT, "TURN right; MOVE ahead 3"),
        ("唔係雞翼呀，雞蛋，買一盒雞蛋", LEFT, "BUY egg_tofu"),
    ],
    "short words inside compounds": [
        ("a tin of tomatoes, please", LEFT, "BUY canned"),
        ("I'd like a tin of peaches", LEFT, "BUY canned"),
        ("get a cheese cake", LEFT, "BUY bakery"),
        ("some potato crisps, please", LEFT, "BUY snacks"),
        ("a bottle of tomato ketchup, please", LEFT, "BUY seasoning"),
        ("買個蛋糕", LEFT, "BUY bakery"),
        ("買個牛油果", LEFT, "BUY vegetables"),
        ("買樽洗頭水", LEFT, "BUY household"),
        ("買罐粟米湯", LEFT, "BUY canned"),
    ],
    "again, and counting aloud": [
        ("up one. Up another one. And another.", LEFT, "MOVE up 3"),
        ("left one, and one more", LEFT, "MOVE left 2"),
        ("up two, and another two", LEFT, "MOVE up 4"),
        ("another two, up", LEFT, "MOVE up 2"),
        ("down, down, down three", TOP, "MOVE down 3"),
        ("up one, two, three", LEFT, "MOVE up 3"),
        ("up one two three four", LEFT, "MOVE up 4"),
        ("上一格，再嚟一格", LEFT, "MOVE up 2"),
        ("上一格，再上一格，再上一格", LEFT, "MOVE up 3"),
        ("行左兩格，再行多一格", LEFT, "MOVE left 3"),
    ],
    "two languages at once": [
        ("買milk", LEFT, "BUY dairy"),
        ("買件cheese cake啦", LEFT, "BUY bakery"),
        ("唔該買chips同coke", LEFT, "BUY snacks; BUY drinks"),
        ("去meat嗰個counter，買件steak", LEFT, "GOTO meat; BUY meat"),
        ("turn left，行兩格", (9, 8, "up"), "TURN left; MOVE ahead 2"),
    ],
    "requests and lists": [
        ("would you get me some onions, and then a bit of steak?", LEFT, "BUY vegetables; BUY meat"),
        ("a loaf, a pint of milk and half a dozen eggs, please", LEFT, "BUY bakery; BUY dairy; BUY egg_tofu"),
        ("take him to the bakery and pick up a loaf", LEFT, "BUY bakery"),
        ("take me a nice cabbage", LEFT, "BUY vegetables"),
        ("there's no milk left, so that, please", LEFT, "BUY dairy"),
        ("over to the dairy for a pint of milk", LEFT, "BUY dairy"),
        ("get some onions for the soup", LEFT, "BUY vegetables"),
        ("milk, please, two bottles", LEFT, "BUY dairy"),
        ("Household, please. Take him there.", LEFT, "GOTO household"),
        ("唔該豬肉、菜、仲要罐頭", LEFT, "BUY meat; BUY vegetables; BUY canned"),
        ("雞蛋一盒，汽水一支，唔該", LEFT, "BUY egg_tofu; BUY drinks"),
        ("要支水", LEFT, "BUY drinks"),
        ("買麵包嚟搽，整三文治用嘅", LEFT, "BUY bakery"),
    ],
    "ends and sides of things that are no part of the map": [
        ("head along to the edge of the marsh", LEFT, UNCLEAR),
        ("then up to the top of the lighthouse", LEFT, UNCLEAR),
        ("right to the bottom of that old windmill", TOP, UNCLEAR),
        ("over to the right-hand side of the orchard", LEFT, UNCLEAR),
        ("move to the left-hand side of it", LEFT, UNCLEAR),
        ("and on to the edge of", LEFT, UNCLEAR),
        ("of the lighthouse", LEFT, UNCLEAR),
        ("go right to the edge of the page", LEFT, "MOVE right end"),
        ("up to the top of your map", LEFT, "MOVE up end"),
        ("left to the end of the aisle", LEFT, "MOVE left end"),
    ],
    "lengths that are no squares": [
        ("left three inches", LEFT, UNCLEAR),
        ("go up another two centimetres", LEFT, UNCLEAR),
        ("walk on for four metres", LEFT, UNCLEAR),
        ("inch along to the left, two squares", LEFT, "MOVE left 2"),
    ],
    "a verb of getting with nothing to get, beside a shelf": [
        ("well try taking", TOP, UNCLEAR),
        ("okay put and then sort of skim along", TOP, UNCLEAR),
        ("we'll take it from there", TOP, "NONE"),
        ("okay you see that", TOP, "NONE"),
        ("at the two of that track", TOP, "NONE"),
        ("put a cross and your initials on it", TOP, "NONE"),
        ("I'll take this slowly", TOP, "NONE"),
        ("put a put a small mark there", TOP, UNCLEAR),
        ("are you beside a bakery", TOP, "NONE"),
    ],
    "what is gone round, near or out of": [
        ("go round the bakery", LEFT, UNCLEAR),
        ("and do another big loop round the bakery", LEFT, UNCLEAR),
        ("turn round the lamp post", LEFT, UNCLEAR),
        ("right near the end", LEFT, UNCLEAR),
        ("go out in a sort of loop", LEFT, UNCLEAR),
        ("just like leaving a small gap", LEFT, UNCLEAR),
        ("turn round the other way and go two", LEFT, "TURN around; MOVE ahead 2"),
    ],
    "what there is and what one has": [
        ("I've got one to the left", LEFT, "NONE"),
        ("there's two windmills on mine", LEFT, "NONE"),
        ("have you a pond at the right-hand side", LEFT, "NONE"),
        ("once you're at the eggs turn left", LEFT, "GOTO egg_tofu; TURN left"),
        ("if you move up three squares", LEFT, "MOVE up 3"),
        ("if you turn right and go two", LEFT, "TURN right; MOVE ahead 2"),
    ],
    "Cantonese: a question, and what follows from its answer": [
        ("有冇雞蛋呀？有就攞一盒", LEFT, "BUY egg_tofu"),
        ("要唔要買牛奶呀？要啦", LEFT, "BUY dairy"),
        ("打麻雀有包魷魚絲先過癮，嚟一包啦", LEFT, "BUY snacks"),
        ("要唔要買雞蛋？唔要喇，屋企仲有", LEFT, "NONE"),
        ("向左定向右呀", LEFT, "NONE"),
        ("買麵包，嗯…定餅乾", LEFT, UNCLEAR),
        ("仲有冇菜心？冇就生菜啦", LEFT, UNCLEAR),
    ],
    "Cantonese: what comes before paying": [
        ("去畀錢…未住，仲要買樽油先", LEFT, "BUY seasoning"),
        ("可以走喇…咪住，去攞包薯片先", LEFT, "BUY snacks"),
        ("去找數啦，啊未得，仲要枝洗潔精", LEFT, "BUY household"),
        ("走得喇，唔係，未畀錢，畀錢先", LEFT, "PAY"),
        ("走喇，等等未畀錢", LEFT, UNCLEAR),
    ],
    "Cantonese: what is denied, put back or put off": [
        ("買豬肉…喔豬肉買咗喇，買菜啦", LEFT, "BUY vegetables"),
        ("買牛奶，牛奶屋企仲有，買雞蛋算", LEFT, "BUY egg_tofu"),
        ("攞樽醬油，咩醬油呀，我話牛奶呀", LEFT, "BUY dairy"),
        ("去收銀處，乜收銀處呀，去飲品嗰度", LEFT, "GOTO drinks"),
        ("攞包花生…唔好啦，咬唔郁，攞枝洗潔精算", LEFT, "BUY household"),
        ("買薯片…唔買喇", LEFT, "NONE"),
        ("罐頭呢啲，聽日至去攞都得啦", LEFT, "NONE"),
        ("行返兩格，唔係行返，係行前兩格", UP, "MOVE ahead 2"),
        ("一格兩格三格，上三格", LEFT, "MOVE up 3"),
    ],
    "Cantonese: what is only told": [
        ("啲餅乾好多添加劑㗎", LEFT, "NONE"),
        ("呢枝豉油我用咗十年喇", LEFT, "NONE"),
        ("隔籬師奶次次買麵包都買成三條", LEFT, "NONE"),
        ("我老公以前成日嗌肚餓㗎…好，上兩格", LEFT, "MOVE up 2"),
        ("得閒先買餅乾啦", LEFT, "NONE"),
        ("蒸魚落少少豉油，好味道", LEFT, "NONE"),
        ("豉油用晒喇，攞返支", LEFT, "BUY seasoning"),
        ("爭盒雞蛋添", LEFT, "BUY egg_tofu"),
    ],
    "Cantonese: places beside the way": [
        ("直上，行到左手邊係罐頭就好喇", LEFT, "MOVE up to canned"),
        ("落去，過咗啲蛋再落一格", (2, 14, "down"), "MOVE down 4"),
        ("向右行過晒啲牛奶，一過咗就停", (2, 4, "right"), "MOVE right 4"),
        ("行去肉同零食中間嗰條巷", (9, 9, "right"), "MOVE right 2"),
        ("去菜同罐頭中間", LEFT, "MOVE left 3"),
    ],
    "Cantonese: aisles that are counted, and those that are not meant": [
        ("數到第三條巷，行到巷口", LEFT, "MOVE left 7"),
        ("企緊呢條唔計，左邊第二條巷上去", LEFT, "MOVE left 6; MOVE up"),
        ("向左過兩條巷，第二條嗰度停", LEFT, "MOVE left 6"),
        ("左邊第二條上得去嘅路，行到路口", LEFT, "MOVE left 6"),
        ("第一條巷唔好入第二條先上去", LEFT, "MOVE left 6; MOVE up"),
        ("向左，second條aisle上去", LEFT, "MOVE left 6; MOVE up"),
    ],
    "Cantonese: where one stops": [
        ("上，去到同罐頭打平", LEFT, "MOVE up to canned"),
        ("上，罐頭喺左手便出現就停", LEFT, "MOVE up to canned"),
        ("直上，見到有罐頭嗰格就得", LEFT, "MOVE up to canned"),
        ("落，有飲品就停", (2, 17, "down"), "MOVE down to drinks"),
        ("上到紙巾同零食中間嗰格", (9, 14, "left"), "MOVE up 2"),
        ("行去角落頭", (9, 5, "left"), "MOVE left end"),
        ("上到罐頭嗰度，罐頭嗰度停呀", LEFT, "MOVE up to canned"),
    ],
    "Cantonese: what is taken back, or is not so far": [
        ("轉身，唔使轉，直行兩格", LEFT, "MOVE ahead 2"),
        ("向左行到盡，咪住，向左三格", LEFT, "MOVE left 3"),
        ("轉左，等等，係轉右", LEFT, "TURN right"),
        ("掉頭行兩格，兩格唔夠喎，三格", LEFT, "BACK 3"),
        ("上四格，使乜上四格吖，兩格咪夠囉", LEFT, "MOVE up 2"),
        ("行左五格，唔係五，行左三格", LEFT, "MOVE left 3"),
        ("向左三格。唔好", LEFT, "NONE"),
        ("攞盒雞蛋，唔好，換樽醬油", LEFT, "BUY seasoning"),
        ("轉左，左邊係牆嚟㗎，轉右", LEFT, "TURN right"),
        ("去埋單，去收銀處埋單", LEFT, "PAY"),
    ],
    "Cantonese: for whom, and how much": [
        ("同阿婆攞樽生抽", LEFT, "BUY seasoning"),
        ("幫我搵包餅乾呀", LEFT, "BUY snacks"),
        ("買番薯", LEFT, "BUY vegetables"),
        ("豉油倒晒，補返樽", LEFT, "BUY seasoning"),
        ("雞蛋一盒方包一條汽水一支", LEFT, "BUY egg_tofu; BUY bakery; BUY drinks"),
        ("攞罐蘑菇", LEFT, "BUY canned"),
        ("唔阻你嘅話，要盒牛奶", LEFT, "BUY dairy"),
        ("最好買返包薯片", LEFT, "BUY snacks"),
        ("薯片醫生話唔好食唔要啦攞豆腐", LEFT, "BUY egg_tofu"),
    ],
    "Cantonese: hands, walls and days that are only told": [
        ("揸筷子嗰隻手呀，轉右", LEFT, "TURN right"),
        ("嗰邊係左，呢邊係右", LEFT, "NONE"),
        ("嗰次轉錯左，行咗三條街", LEFT, "NONE"),
        ("放一湯匙糖就夠", LEFT, "NONE"),
        ("雞蛋賣幾多錢一打呀", LEFT, "NONE"),
        ("啲街坊搬走晒", LEFT, "NONE"),
    ],
    "things that are only talked about": [
        ("Ooh, that's a lot of vegetables.", LEFT, "NONE"),
        ("My daughter says eggs are bad for me.", LEFT, "NONE"),
        ("菜要揀靚嘅", LEFT, "NONE"),
    ],
    "without punctuation": [
        ("my daughter never eats meat go up two squares", LEFT, "MOVE up 2"),
        ("a bag of crisps a bottle of cola and a loaf please", LEFT, "BUY snacks; BUY drinks; BUY bakery"),
        ("up two get the meat what a lovely shop", LEFT, "MOVE up 2; BUY meat"),
        ("where would i find the sugar", LEFT, "NONE"),
        ("屋企冇牛奶買盒牛奶啦", LEFT, "BUY dairy"),
        ("菜心要一斤方包要一條", LEFT, "BUY vegetables; BUY bakery"),
    ],
    "what others say or said": [
        ("He'd shout, turn left, turn left, and I never knew where to.", LEFT, "NONE"),
        ("Go and get the bread, our mother would holler.", LEFT, UNCLEAR),
        ("Turn round, she used to call out, and off we went.", LEFT, "NONE"),
        ("the doctor always said, cut out the cake", LEFT, "NONE"),
        ("My mother would say, buy the meat first. So two to the left, please.", LEFT, "MOVE left 2"),
    ],
    "statements about goods, prices and tastes": [
        ("Butter's gone up again, four dollars for a block!", LEFT, "NONE"),
        ("Two quid for a lettuce, I ask you.", LEFT, "NONE"),
        ("The cat loves a bit of chicken.", LEFT, "NONE"),
        ("I do love a nice ripe tomato.", LEFT, "NONE"),
        ("I'm a great one for cheese, always have been.", LEFT, "NONE"),
        ("he's off the salt", LEFT, "NONE"),
        ("fancy paying three pounds for a cabbage", LEFT, "NONE"),
    ],
    "habits, and where things are": [
        ("I get my bread at the corner shop.", LEFT, "NONE"),
        ("We go to the bakery of a morning.", LEFT, "NONE"),
        ("I take my tea with milk.", LEFT, "NONE"),
        ("They've put the bread where the milk used to be.", LEFT, "NONE"),
        ("She brings me eggs every week. Left two.", LEFT, "MOVE left 2"),
    ],
    "needs without a verb of buying": [
        ("Mustard is next on my list.", LEFT, "BUY seasoning"),
        ("Bread's next on the list.", LEFT, "BUY bakery"),
        ("Cheese is what I came for.", LEFT, "BUY dairy"),
        ("On my list it says carrots and leeks.", LEFT, "BUY vegetables"),
        ("Have they got sausages? If so, a packet of those.", LEFT, "BUY meat"),
        ("We're clean out of bleach, so that has to go in the trolley.", LEFT, "BUY household"),
        ("What I'd really like is a nice bit of ham.", LEFT, "BUY meat"),
    ],
    "small words that are goods, and goods that are small words": [
        ("Pop a loaf in for me, would you?", LEFT, "BUY bakery"),
        ("Pop us a pint of milk in the trolley.", LEFT, "BUY dairy"),
        ("A bottle of pop, please.", LEFT, "BUY drinks"),
        ("Fetch me a loaf, sugar.", LEFT, "BUY bakery"),
        ("Honey, get me some bread.", LEFT, "BUY bakery"),
        ("Get me some honey, honey.", LEFT, "BUY seasoning"),
        ("Thank you, sugar.", LEFT, "NONE"),
        ("Nip over and take the loo roll.", LEFT, "BUY household"),
    ],
    "what is taken back, and what is only put off": [
        ("Pay. Hang on, before that I need salt. So, salt, then pay.", LEFT, "BUY seasoning; PAY"),
        ("Go and pay. Wait, before that get the milk.", LEFT, "BUY dairy; PAY"),
        ("Off to the till. No, hang on, eggs first.", LEFT, "BUY egg_tofu; GOTO FINISH"),
        ("Pay now. Oh no, not yet, get me some sugar.", LEFT, "BUY seasoning"),
        ("Out the door. Wait, not out. Only as far as the door.", LEFT, "GOTO EXIT"),
        ("Left three. No, that's a wall. Right two.", LEFT, "MOVE right 2"),
        ("Get the ham. Forget that. Eggs are what I need.", LEFT, "BUY egg_tofu"),
        ("To the exit. No, take me to the till.", LEFT, "GOTO FINISH"),
        ("Some bread. No, wait, I've bread at home. Milk.", LEFT, "BUY dairy"),
    ],
    "versions left open": [
        ("Right two, or was it six? You decide.", RIGHT, UNCLEAR),
        ("Turn left, or is it right?", LEFT, UNCLEAR),
        ("Up two, was it? Or three?", LEFT, UNCLEAR),
        ("Take the meat or the eggs.", LEFT, UNCLEAR),
        ("Is it cold in here, or is it me? Left two.", LEFT, "MOVE left 2"),
    ],
    "counting aloud to the end": [
        ("To the left. One, two, three... and four.", LEFT, "MOVE left 4"),
        ("Up, one, two, and three.", LEFT, "MOVE up 3"),
        ("Upwards, please. Three little boxes.", LEFT, "MOVE up 3"),
    ],
    "aisles and places left behind": [
        ("Left. Skip one aisle. The one after that, go up it to the top.", LEFT, "MOVE left 6; MOVE up end"),
        ("Go left to the second aisle and then up to the top.", LEFT, "MOVE left 6; MOVE up end"),
        ("Left, not the first aisle but the second, and go up it.", LEFT, "MOVE left 6; MOVE up"),
        ("Left past the first aisle and up the second.", LEFT, "MOVE left 6; MOVE up"),
        ("Now the one after.", LEFT, UNCLEAR),
        ("Down past the meat, just one square past it.", TOP, "MOVE down 4"),
        (
            "Keep going till, let me see, till the bakery is on your left-hand side.",
            RIGHT,
            "MOVE right to bakery",
        ),
        ("Up until you're just beneath the bread", LEFT, "MOVE up to bakery"),
    ],
    "ways that nobody can know": [
        ("Go where we went last time.", LEFT, UNCLEAR),
        ("Keep going till I say stop.", LEFT, UNCLEAR),
        ("Take the other aisle, not this one.", LEFT, UNCLEAR),
        ("The eggs are next.", LEFT, UNCLEAR),
    ],
    "the aisle between two places, or after one": [
        ("Go right to the aisle that has meat on one side and snacks on the other.", LEFT, "MOVE right 3"),
        (
            "Along to the lane between the snacks and the eggs, and up that to the top.",
            LEFT,
            "MOVE right 6; MOVE up end",
        ),
        ("Go right. Let one aisle go by, and stop at the second.", LEFT, "MOVE right 6"),
        ("Left to the first aisle past the bread.", (2, 11, "left"), "MOVE left 6"),
        ("Right to the second aisle, no, the first one.", LEFT, "MOVE right 3"),
    ],
    "who has what beside him": [
        ("Up till he has the pork at his right elbow.", LEFT, "MOVE up to meat"),
        ("Up, and when the chops are next to you, halt.", LEFT, "MOVE up to meat"),
        ("Up until there's mince to my right.", LEFT, "MOVE up to meat"),
        ("One square higher than the meat, that's where to.", LEFT, "MOVE up 5"),
        ("Ninety degrees to the right, then three squares.", LEFT, "TURN right; MOVE ahead 3"),
    ],
    "the figure as he or she": [
        ("Up to the top, and then he goes left two.", LEFT, "MOVE up end; MOVE left 2"),
        ("Turn the wee man to his left.", LEFT, "TURN left"),
        ("Leave her where she is.", LEFT, "NONE"),
        ("Take him over to where the drinks are.", LEFT, "GOTO drinks"),
    ],
    "what is said again": [
        ("Up to the meat, straight up.", LEFT, "MOVE up to meat"),
        ("Up three squares and not one more.", LEFT, "MOVE up 3"),
        ("Go back the way he came, two steps of it.", LEFT, "BACK 2"),
        ("left two no four four squares", LEFT, "MOVE left 4"),
        ("Three to the left. I counted the one he is on. Two to the left.", LEFT, "MOVE left 2"),
    ],
    "the order of things": [
        ("First the soap, then some crackers.", LEFT, "BUY household; BUY snacks"),
        ("Pay now. Oh, the butter first, and then pay.", LEFT, "BUY dairy; PAY"),
        ("To the exit. Oh, I haven't paid. To the till.", LEFT, "GOTO FINISH"),
        ("The bread can wait.", LEFT, "NONE"),
    ],
    "needs that are stated sideways": [
        ("There isn't a drop of milk in the house, so that had better come first.", LEFT, "BUY dairy"),
        ("No stew without carrots. In the trolley with some.", LEFT, "BUY vegetables"),
        ("Next on my list is soap.", LEFT, "BUY household"),
        ("The pepper is finished, and the salt too. I need the both of them.", LEFT, "BUY seasoning"),
        ("Some flour... I've a whole bag of flour. Take butter.", LEFT, "BUY dairy"),
        ("Get the beef. Not the beef. Make it tofu.", LEFT, "BUY egg_tofu"),
        ("a bit of lamb not too fat", LEFT, "BUY meat"),
        ("soap for me and for my daughter some crackers", LEFT, "BUY household; BUY snacks"),
    ],
    "denials without punctuation": [
        ("go to the vegetables not the meat", LEFT, "GOTO vegetables"),
        ("get some crisps oh not crisps the lemonade", LEFT, "BUY drinks"),
        ("the soap get it", LEFT, "BUY household"),
        ("get bread milk eggs and soap", LEFT, "BUY bakery; BUY dairy; BUY egg_tofu; BUY household"),
        ("butter rather than bread", LEFT, "BUY dairy"),
        ("go right then up three", (9, 5, "left"), "MOVE right 3; MOVE up 3"),
        ("don't take the first aisle go up two", LEFT, "MOVE up 2"),
        ("my gran always said don't waste your bread anyway go up two", LEFT, "MOVE up 2"),
        ("Leave the meat there.", LEFT, "NONE"),
    ],
    "which opening": [
        ("Go left to the first opening. Sorry, the second.", LEFT, "MOVE left 6"),
        (
            "The second opening on your right, that's it, go up there to the top.",
            (9, 14, "left"),
            "MOVE left 6; MOVE up end",
        ),
        ("Straight up to the big aisle.", (12, 15, "left"), "MOVE up 3"),
    ],
    "numbers that are no squares": [
        ("That was back in 1961, left of the church.", LEFT, "NONE"),
        ("Up three flights of stairs, with my knees.", LEFT, "NONE"),
        ("Up three. Ten minutes it took me.", LEFT, "MOVE up 3"),
    ],
}


@pytest.mark.parametrize(
    ("family", "text", "where", "meant"),
    [(family, *member) for family, members in FAMILIES.items() for member in members],
)
def test_members_of_a_family_are_read_alike(family, text, where, meant):
    assert agrees(text, where, meant), family


def test_alternatives_are_spelt_out():
    assert spellings("(up|down) to (the |)end") == [
        "up to the end",
        "up to end",
        "down to the end",
        "down to end",
    ]


def test_a_phrase_of_the_file_goes_before_alternatives():
    language = load_language("en")
    vocabulary = Vocabulary(language, TERRAIN.spec)
    kinds = [token.kind for token in vocabulary.tokens("until you hit the wall")]
    assert kinds[-1] == "END"


def test_talk_without_punctuation_is_cut_where_a_request_begins():
    language = load_language("en")
    text = "my daughter always eats the eggs go up two squares and get some milk please"
    clauses = cut_clauses(Vocabulary(language, TERRAIN.spec).cut(text), text)
    assert clauses[0].dead
    assert not clauses[1].dead


NEVER_SURE = {
    "what is taken back at once": ["Left three, not left, up three.", "Up two. Not up, down. Down two."],
    "goods that are part of what nobody knows": [
        "get me a bread knife",
        "some egg fried rice, please",
        "攞個麵包機",
    ],
    "asked whether the figure may go on": ["Could he go a wee bit nearer?", "Will he go up a bit more?"],
    "no squares": ["come down two and a half inches", "go out an inch"],
    "where one started is no goal": ["we're at the start", "until you're directly above the start"],
    "what the map has elsewhere": ["left one, up three, then take the meat"],
}

PLAIN = ["go right one", "move left one", "two squares up", "left two", "向左行一格", "往左走一格"]


@pytest.mark.parametrize("family", NEVER_SURE)
def test_some_doubts_stay_open_however_probable_a_reading_is(family):
    assert [text for text in NEVER_SURE[family] if proposed(text, LEFT).is_confident] == []


@pytest.mark.parametrize("text", PLAIN)
def test_measured_steps_in_plain_words_are_sure(text):
    assert proposed(text, (9, 8, "up") if "up" not in text else (6, 5, "down")).is_confident


def proposed(text, where):
    language = "en" if text.isascii() else "zh" if "走" in text else "yue"
    position = TERRAIN.position(*where)
    return RULES.ground(Segment(1, text, (0,), (0,), (0,)), Context(TERRAIN, position, language=language))
