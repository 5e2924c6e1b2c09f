package relay

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/feed"
)

// vrchat is VRChat, which accepts Open Sound Control by UDP: parameters of the current avatar,
// and texts for the chatbox above it (https://docs.vrchat.com/docs/osc-overview,
// osc-avatar-parameters, osc-as-input-controller).
type vrchat struct{ *programConfig }

// The OSC addresses of VRChat.
const (
	vrchatParameter = "/avatar/parameters/"
	vrchatInput     = "/chatbox/input"
	vrchatTyping    = "/chatbox/typing"
	vrchatEmote     = "VRCEmote" // the parameter of the built-in gestures
)

// Bounds of the chatbox. The first three are VRChat's own; it mutes a user who sends faster.
const (
	mostChat      = 144 // UTF-16 units
	mostChatLines = 9
	chatEvery     = 1500 * time.Millisecond
	mostWaiting   = 4 // notifications
)

// Times of VRChat's link.
const (
	vrchatTick  = 250 * time.Millisecond
	vrchatAgain = 2 * time.Second // everything is sent again: datagrams get lost, and users change avatars
	emoteFor    = time.Second     // before the parameter goes back to 0
)

func vrchatKind() kind {
	k := kind{
		Kind: Kind{Name: "vrchat", Title: "VRChat", URL: "udp://127.0.0.1:9000",
			Shows: []string{"states", "faces", "gestures", "moods", "speech", "notifications", "questions", "mouth"}},
		schemes: []string{"udp"}, port: true,
		mute: true,
		words: map[string]string{
			"parameter.state": "Stackchan/State", "parameter.face": "Stackchan/Face", "parameter.mouth": "Stackchan/Mouth",
			"chatbox.speech": "on", "chatbox.notifications": "on", "chatbox.typing": "on",
			// The stock gestures of VRChat with the same meaning.
			"gesture.wave": "1", "gesture.point": "3", "gesture.celebrate": "4", "gesture.dance": "5",
		},
		make: func(o *programConfig) (program, error) { return vrchat{o}, nil },
	}
	for i, s := range states() {
		k.words["state."+string(s)] = strconv.Itoa(i)
	}
	for i, e := range agent.Emotions() {
		k.words["face."+e.Name] = strconv.Itoa(i)
	}
	for _, f := range feelings()[1:] {
		k.words["feeling."+f] = "Stackchan/" + capital(f)
	}
	return k
}

func (p vrchat) open(ctx context.Context, _ func(error)) (link, error) {
	d, err := openDatagrams(ctx, p.URL, oscMessage(vrchatTyping, oscBool(false)))
	if err != nil {
		return nil, err
	}
	return &vrchatLink{datagrams: d, words: p.words, sent: map[string]oscValue{}}, nil
}

type vrchatLink struct {
	*datagrams
	words   words
	sent    map[string]oscValue // parameters, as sent
	chat    chatbox
	emote   time.Time // when a gesture started; zero while none is shown
	again   time.Time // when everything was last sent again
	talking float64   // how far the mouth is open
}

// parameters returns the parameters for a scene. The word of a state or face is a number, the
// value of the state or face parameter, or else the name of a boolean parameter.
func (l *vrchatLink) parameters(s Scene) map[string]oscValue {
	all := map[string]oscValue{}
	for parameter, word := range map[string]string{"parameter.state": l.words.state(s.State), "parameter.face": l.words.face(s.Expression())} {
		name := l.words.of(parameter)
		switch n, err := strconv.ParseInt(word, 10, 32); {
		case word == "":
		case err != nil:
			all[word] = oscBool(true)
		case name != "":
			all[name] = oscInt(int32(n))
		}
	}
	for feeling, x := range strengths(s.Mood.Feelings) {
		if name := l.words.feeling(feeling); name != "" {
			all[name] = oscFloat(hundredths(x))
		}
	}
	return all
}

// hundredths rounds x to the precision with which VRChat synchronizes numbers, in the range
// from 0 to 1.
func hundredths(x float64) float64 { return math.Round(100*min(max(x, 0), 1)) / 100 }

// setParameters returns the messages for the parameters that have changed. A boolean parameter is
// switched off when it is no longer included.
func (l *vrchatLink) setParameters(is map[string]oscValue) (messages []string) {
	for _, name := range changed(is, l.sent) {
		v, still := is[name]
		if !still {
			v = oscBool(false)
			if l.sent[name].tag != 'T' {
				continue
			}
		}
		messages = append(messages, oscMessage(vrchatParameter+name, v))
	}
	l.sent = is
	return messages
}

// types reports whether to show the typing indicator: an agent is working.
func (l *vrchatLink) types(s Scene) bool {
	return l.words.of("chatbox.typing") != "" && (s.State == agent.Thinking || s.State == agent.Working || s.State == agent.Juggling)
}

func (l *vrchatLink) update(_ context.Context, is, was Scene) error {
	messages := l.setParameters(l.parameters(is))
	if typing := l.types(is); typing != l.types(was) {
		messages = append(messages, oscMessage(vrchatTyping, oscBool(typing)))
	}
	if is.Said != was.Said && l.words.of("chatbox.speech") != "" {
		l.chat.setSpeech(is.Said)
	}
	if is.Question != was.Question && l.words.of("chatbox.notifications") != "" {
		l.chat.notify(is.Question)
	}
	return l.send(append(messages, l.nextChat()...)...)
}

func (l *vrchatLink) frame(_ context.Context, f *feed.Frame, _ Scene) error {
	switch b := f.Body.(type) {
	case feed.Gesture:
		n, err := strconv.ParseInt(l.words.gesture(b.Name), 10, 32)
		if err != nil {
			return nil // the avatar has no such gesture
		}
		l.emote = time.Now()
		return l.send(oscMessage(vrchatParameter+vrchatEmote, oscInt(int32(n))))
	case feed.Notice:
		if l.words.of("chatbox.notifications") == "" {
			return errNotShown
		}
		if b.Question == "" { // update shows questions
			l.chat.notify(b.Text)
		}
		return l.send(l.nextChat()...)
	}
	return nil
}

func (l *vrchatLink) setMouth(_ context.Context, level float64) error {
	l.talking = hundredths(level)
	return l.send(l.mouth()...)
}

// mouth returns the message for how far the mouth is open, if the words have a parameter for it.
func (l *vrchatLink) mouth() (messages []string) {
	if name := l.words.of("parameter.mouth"); name != "" {
		messages = append(messages, oscMessage(vrchatParameter+name, oscFloat(l.talking)))
	}
	return messages
}

// nextChat returns the message with the next text for the chatbox, if one is allowed by now.
func (l *vrchatLink) nextChat() (messages []string) {
	if text := l.chat.next(time.Now()); text != "" {
		messages = append(messages, oscMessage(vrchatInput, oscText(text), oscBool(true), oscBool(false)))
	}
	return messages
}

func (l *vrchatLink) refreshEvery() time.Duration { return vrchatTick }

// refresh ends a gesture, writes queued text, and sends everything again when due.
func (l *vrchatLink) refresh(_ context.Context, is Scene) error {
	var messages []string
	if !l.emote.IsZero() && time.Since(l.emote) >= emoteFor {
		l.emote = time.Time{}
		messages = append(messages, oscMessage(vrchatParameter+vrchatEmote, oscInt(0)))
	}
	if time.Since(l.again) >= vrchatAgain-vrchatTick/2 { // the nearest tick
		l.again = time.Now()
		for _, name := range slices.Sorted(maps.Keys(l.sent)) {
			messages = append(messages, oscMessage(vrchatParameter+name, l.sent[name]))
		}
		messages = append(messages, l.mouth()...)
		if l.types(is) {
			messages = append(messages, oscMessage(vrchatTyping, oscBool(true)))
		}
	}
	return l.send(append(messages, l.nextChat()...)...)
}

// close leaves the avatar at rest, with all booleans off.
func (l *vrchatLink) close() {
	rest := l.parameters(Scene{State: agent.Idle})
	maps.DeleteFunc(rest, func(_ string, v oscValue) bool { return v.tag == 'T' })
	messages := append(l.setParameters(rest), oscMessage(vrchatTyping, oscBool(false)))
	if l.talking > 0 {
		l.talking = 0
		messages = append(messages, l.mouth()...)
	}
	if !l.emote.IsZero() {
		messages = append(messages, oscMessage(vrchatParameter+vrchatEmote, oscInt(0)))
	}
	for _, m := range messages {
		_ = l.send(m) // its error may belong to an earlier datagram
	}
	l.datagrams.close()
}

// chatbox queues what is to be written to the chatbox: notifications, and the latest sentence.
type chatbox struct {
	notices []string
	said    string
	wrote   time.Time
}

func (c *chatbox) setSpeech(text string) { c.said = text }

func (c *chatbox) notify(text string) {
	c.notices = append(c.notices, text)
	c.notices = c.notices[max(0, len(c.notices)-mostWaiting):]
}

// next returns the text to write now, or "".
func (c *chatbox) next(now time.Time) (text string) {
	if now.Sub(c.wrote) < chatEvery {
		return ""
	}
	for text == "" && len(c.notices) > 0 {
		text, c.notices = chatText(c.notices[0]), c.notices[1:]
	}
	if text == "" {
		text, c.said = chatText(c.said), ""
	}
	if text != "" {
		c.wrote = now
	}
	return text
}

// chatText cuts a text to the chatbox's bounds.
func chatText(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > mostChatLines {
		lines = append(lines[:mostChatLines-1], strings.Join(lines[mostChatLines-1:], " "))
	}
	text = strings.Join(lines, "\n")
	if len(utf16.Encode([]rune(text))) <= mostChat {
		return text
	}
	units := 1 // the ellipsis
	for i, r := range text {
		if units += utf16.RuneLen(r); units > mostChat {
			return text[:i] + "…"
		}
	}
	return text
}

// strengths returns the strength of each feeling by name.
func strengths(f event.Feelings) map[string]float64 {
	return map[string]float64{"concern": f.Concern, "celebration": f.Celebration, "patience": f.Patience, "curiosity": f.Curiosity,
		"empathy": f.Empathy, "uncertain": f.Uncertain}
}
