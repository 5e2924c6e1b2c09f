package sphinx

// house is a grammar of the size and shape that a reflex brain has.
var house = Grammar{
	Top: []string{
		"time", "date", "name", "help", "volume", "brightness", "look", "nod", "lights",
		"feelings", "remember", "recall", "who", "stop", "night", "timer", "hello", "picture", "joke",
	},
	Rules: []Rule{
		{Name: "time", Body: "(what time is it | what's the time | tell me the time) [please]"},
		{Name: "date", Body: "what day is it [today] | what's the date [today] | tell me the date"},
		{Name: "name", Body: "what's your name | who are you | introduce yourself"},
		{Name: "help", Body: "help me | what can you do | what can i say"},
		{Name: "volume", Body: "set the volume to <percent> [percent] | turn the volume (up | down) | volume (up | down) | speak louder | speak quieter | mute yourself | be quiet"},
		{Name: "brightness", Body: "set the brightness to <percent> [percent] | make the screen (brighter | darker)"},
		{Name: "look", Body: "look (to the left | to the right | left | right | up | down | straight ahead) | look at me"},
		{Name: "nod", Body: "nod your head | shake your head"},
		{Name: "lights", Body: "(make | turn) your lights <color> | turn your lights (off | on) | turn (off | on) your lights"},
		{Name: "feelings", Body: "how are you [today] | how do you feel | i love you | are you happy | thank you [very much] | you are (cute | funny | great) | i am (sad | happy | tired)"},
		{Name: "remember", Body: "remember that my <thing> (is | are) (in | on) the <place>"},
		{Name: "recall", Body: "where (is | are) my <thing> | what do you remember"},
		{Name: "who", Body: "who is in the room | who is there | do you see me"},
		{Name: "stop", Body: "stop | stop talking | never mind | cancel that"},
		{Name: "night", Body: "good night | go to sleep | wake up | goodbye"},
		{Name: "timer", Body: "set a timer for <number> (minutes | seconds | minute) | cancel the timer | how much time is left"},
		{Name: "hello", Body: "hello [robot] | good morning | good evening"},
		{Name: "picture", Body: "what do you see | take a picture"},
		{Name: "joke", Body: "tell me a joke | tell me a story | sing a song | restart yourself"},
		{Name: "color", Body: "red | green | blue | white | yellow | orange | purple"},
		{Name: "thing", Body: "keys | phone | glasses | wallet | book"},
		{Name: "place", Body: "kitchen | bedroom | living room | bathroom | garage | table | car"},
		{Name: "percent", Body: "<number> | one hundred | a hundred"},
		{Name: "number", Body: "zero | <digit> | <teen> | <tens> [<digit>]"},
		{Name: "digit", Body: "one | two | three | four | five | six | seven | eight | nine"},
		{Name: "teen", Body: "ten | eleven | twelve | thirteen | fourteen | fifteen | sixteen | seventeen | eighteen | nineteen"},
		{Name: "tens", Body: "twenty | thirty | forty | fifty | sixty | seventy | eighty | ninety"},
	},
}

// commands are sentences of the house grammar.
var commands = []string{
	"what time is it", "what's the time please", "tell me the time", "what day is it today",
	"what's the date", "tell me the date", "what's your name", "who are you", "introduce yourself",
	"help me", "what can you do", "what can i say", "set the volume to fifty percent",
	"set the volume to twenty five", "set the volume to one hundred percent", "set the volume to eight",
	"turn the volume up", "turn the volume down", "volume up", "speak louder", "mute yourself", "be quiet",
	"set the brightness to seventy", "set the brightness to fifteen percent", "make the screen brighter",
	"look to the left", "look right", "look up", "look straight ahead", "look at me", "nod your head",
	"shake your head", "make your lights red", "turn your lights blue", "turn your lights off",
	"how are you today", "how do you feel", "i love you", "thank you very much", "you are funny",
	"remember that my keys are in the kitchen", "remember that my phone is on the table",
	"remember that my wallet is in the car", "where are my glasses", "where is my book",
	"what do you remember", "who is in the room", "do you see me", "stop talking", "never mind",
	"good night", "go to sleep", "wake up", "goodbye", "set a timer for ten minutes",
	"set a timer for thirty five seconds", "cancel the timer", "how much time is left",
	"hello robot", "good morning", "what do you see", "take a picture", "tell me a joke", "sing a song",
	"restart yourself", "stop",
}

// others are sentences that it does not have, the nearest misses first.
var others = []string{
	"what time is lunch", "set the table", "look at this", "turn off the television",
	"remember the milk please", "what's the weather today", "tell me the truth", "set the volume",
	"turn your head around", "make your bed", "where is my mother", "who is the president",
	"take a seat", "go to school", "how are your parents", "i love chocolate", "what can it cost",
	"remember that my", "set a timer", "turn the page", "good idea", "look out of the window",
	"the kitchen is dirty", "stop the music in the bedroom", "what do you think about football",
	"wake up my brother at seven", "sing along with the radio", "how old are you",
	"the quick brown fox jumps over the lazy dog", "i would like a cup of coffee",
	"my sister is coming over for dinner tonight", "did you feed the cat this morning",
	"can you read me a book about dinosaurs", "play some jazz music", "open the window",
	"close the door behind you", "how do i get to the station", "call the doctor tomorrow",
	"it is raining outside", "we should paint the garage next week", "order a large pizza",
	"the train leaves at half past nine", "where did you put the scissors", "nobody knows the answer",
	"a", "yes", "no", "what", "hm", "banana",
}
