"""The closed vocabulary of the corpus: what requests, descriptions, facts and reviews are made of.

Every class lists its synonyms. A request and a tool description draw their words independently, so a
model has to learn that "get rid of" and "delete" mean the same, while which *name* belongs to a
description is only written in the list.
"""

from __future__ import annotations


def _table(text: str) -> list[list[str]]:
    """One class a line, synonyms separated by commas."""
    return [[w.strip() for w in line.split(",")] for line in text.strip().splitlines()]


def words(text: str) -> list[str]:
    """Words between white space."""
    return text.split()


VERBS = _table("""
create, make, add, set up
delete, remove, erase, get rid of
show, display, bring up
send, mail, deliver
open, launch, start
close, shut, end
update, change, edit, modify
find, search for, look for, locate
book, reserve
cancel, call off, drop
play, put on
pause, halt, stop
buy, purchase, order
sell, put up for sale
translate, interpret
summarize, sum up, shorten
share, pass on
copy, duplicate, clone
rename, give a new name to
move, relocate, shift
print, put on paper
download, fetch, get
upload, hand in, submit
save, store, keep
sort, arrange, put in order
count, tally
check, verify, inspect
lock, secure
unlock, free
pay, settle
rate, score
clean, wash, tidy up
repair, fix, mend
rent, hire
compare, contrast
record, tape, capture
approve, accept, allow
reject, refuse, turn down
assign, give, hand over
archive, put away
restore, bring back, recover
explain, clarify
measure, size up
draw, sketch
write, compose, draft
read, go through
""")

OBJECTS = _table("""
event, appointment
meeting, conference
message, text
letter, note
photo, picture, image
song, track, tune
movie, film
file, document
folder, directory
list, checklist
task, todo
reminder, alert
alarm, timer
contact, address
customer, client
invoice, bill
payment, transfer
account, profile
password, passcode
ticket, pass
flight, plane trip
hotel, room
table, desk
car, vehicle
bike, bicycle
train, railway trip
taxi, cab
route, path
map, chart
weather report, forecast
news story, article
book chapter, section
recipe, dish
meal, dinner
product, item
package, parcel
price, cost
discount, coupon
review, feedback
game, match
score sheet, result
team, group
player, member
door, gate
window, shutter
lamp, light
heater, radiator
fan, cooler
camera, webcam
printer, scanner
server, machine
database, data store
backup, snapshot
program, app
bug report, issue
branch, fork
report, summary
survey, poll
course, class
exam, test
lesson, tutorial
garden, lawn
plant, flower
pet, animal
doctor visit, checkup
medicine, drug
workout, exercise
budget, spending plan
loan, credit
share price, stock quote
""")

# Words that stand for nothing: opaque tool names, fact subjects, word lists.
NEUTRAL = words("""
falcon maple otter cedar quartz comet harbor violet amber willow raven tundra copper lotus ember delta canyon
marble coral pine meadow breeze pebble saddle lantern anchor basket bridge candle castle circle cloud crown
dagger dragon eagle feather forest fountain glacier hammer island jungle kettle ladder lemon mirror needle ocean
orchid panda pepper pillow pirate planet prism puzzle rabbit ribbon river rocket saffron shadow silver spider
spiral sugar summit sunset temple thunder tiger tower tulip turtle valley velvet walnut whale winter yellow
zebra acorn badger beacon birch blossom bronze cactus camel canvas chestnut cliff clover cobalt cricket crystal
desert dolphin domino drum fern flint flute fox frost garnet goose granite grape hazel heron honey iris ivory
jade jasper kiwi lagoon lark leopard lily lynx magnet mango moss nectar nickel night nova oak olive onyx opal
owl oyster peach pearl pigeon plum poppy
""")

# Words in real tool names beside the verbs and objects above.
NAME_PARTS = words("""
get set do run call new my user item data api service tool action handler v2 batch sync quick auto admin reply
think wait finish ask answer skip retry help search lookup status info config query value
""")

SUBJECTS = words("""
door window lamp box car house shirt cup ball chair table hat bag phone book bottle pen key cat dog bird horse
fish tree flower shop room kitchen garden road train bus boat wall floor roof fence gate
""")

# Values a fact can state; two of one row exclude each other, so the asked-for one is right or wrong.
STATES = _table("""
red, blue, green, black, white, yellow, brown, pink
open, closed
big, small, tiny, huge
hot, cold, warm
new, old, broken
full, empty
clean, dirty, dusty
wet, dry
heavy, light
cheap, expensive, free
quiet, loud
fast, slow
soft, hard
locked, missing
""")

# Rows that go from little to much.
GRADES = _table("""
tiny, small, big, huge
cold, warm, hot
free, cheap, expensive
slow, fast
quiet, loud
light, heavy
""")

# Levels for negative, neutral and positive.
SENTIMENT_LEVELS = _table("""
negative, neutral, positive
bad, average, good
unhappy, indifferent, happy
angry, calm, delighted
terrible, okay, great
""")

REVIEW_SUBJECTS = words("""
movie hotel food service phone book game room staff coffee music story trip laptop camera restaurant dress concert
app course pizza car sound screen battery chair show park museum bread
""")

SENTIMENT_WORDS = {
    "positive": words("""
great wonderful excellent amazing lovely fantastic perfect superb delightful brilliant good charming outstanding
pleasant beautiful impressive
"""),
    "negative": words("""
terrible awful horrible bad boring disappointing dreadful poor ugly annoying useless nasty disgusting dull
miserable painful
"""),
    "neutral": words("""
average okay ordinary normal standard typical usual plain acceptable fair medium unremarkable common regular
moderate passable
"""),
}

# fmt: off
SENTIMENT_CLAUSES = {
    "positive": ["I loved it", "I enjoyed every minute", "I would buy it again", "it made me happy",
                 "I recommend it", "I am so glad I came", "it was worth every cent", "I am delighted"],
    "negative": ["I hated it", "it was a waste of money", "I want my money back", "it made me angry",
                 "avoid it", "I regret it", "I will never return", "I was bored to death"],
    "neutral": ["it does the job", "nothing special", "I have no opinion", "it is what it is",
                "neither good nor bad", "it was as expected", "I feel nothing about it", "it exists"],
}
# fmt: on

SENTIMENT_MEANINGS = {
    "positive": ["the customer is happy", "praise", "they liked it"],
    "negative": ["the customer is unhappy", "a complaint", "they did not like it"],
    "neutral": ["neither happy nor unhappy", "no strong feeling", "they do not care"],
}

# What a value may be, with the phrases that introduce it in a request. The key is the argument's name.
VALUE_PHRASES: dict[str, list[str]] = {
    "city": ["in {}", "near {}", "at {}"],
    "name": ["for {}", "with {}", "from {}"],
    "title": ["called {}", "named {}", "titled {}"],
    "file": ["from the file {}", "using {}", "into {}"],
    "number": ["number {}", "with the number {}", "no. {}"],
    "code": ["with code {}", "marked {}", "tagged {}"],
    "time": ["at {}", "by {}", "before {}"],
    "quote": ['"{}"', 'saying "{}"', "'{}'"],
}
