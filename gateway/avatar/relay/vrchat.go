package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/gateway/mdns"
)

// vrchat is VRChat. By Open Sound Control over UDP it receives parameters of the current avatar, and
// texts for the chatbox above the avatar (https://docs.vrchat.com/docs/osc-overview,
// osc-avatar-parameters, osc-as-input-controller). By OSCQuery it finds Perch, and then sends Perch a
// message when the user changes the avatar (https://docs.vrchat.com/docs/oscquery).
type vrchat struct {
	*programConfig
	query     *oscQuery
	found     string    // latest result of findAddress
	hint      error     // latest result of findElsewhere
	hintUntil time.Time // when findElsewhere browses again
}

const (
	vrchatURL      = "udp://127.0.0.1:9000"
	vrchatInstance = "VRChat-Client-" // prefix of the instance name under which VRChat announces itself
	// vrchatBrowseTimeout is how long to wait for announcements.
	vrchatBrowseTimeout = 3 * time.Second
	// vrchatHintEvery is how often Perch looks for VRChat on other machines while no VRChat listens on this one.
	vrchatHintEvery = time.Minute
)

// OSC addresses and parameters of VRChat.
const (
	vrchatParameter = "/avatar/parameters/" // followed by the name of the parameter
	vrchatAvatar    = "/avatar/change"      // address of the message that VRChat sends when the user changes the avatar
	vrchatInput     = "/chatbox/input"
	vrchatTyping    = "/chatbox/typing"
	vrchatEmote     = "VRCEmote" // parameter of the built-in gestures
)

// Limits of the chatbox. VRChat sets the first three, and mutes a user who exceeds them.
const (
	maxChatUnits   = 144 // UTF-16 code units
	maxChatLines   = 9
	chatEvery      = 1500 * time.Millisecond
	maxChatNotices = 4 // queued notifications
)

// Intervals of a link to VRChat.
const (
	vrchatTick        = 250 * time.Millisecond
	vrchatRepeatEvery = 2 * time.Second // interval of repeating everything, because datagrams may be lost and users change avatars
	emoteFor          = time.Second     // duration of a gesture, after which its parameter is set to 0
)

func vrchatKind() kind {
	k := kind{
		Kind: Kind{Name: "vrchat", Title: "VRChat", URL: vrchatURL,
			Shows: []string{"states", "faces", "gestures", "moods", "speech", "notifications", "questions", "mouth"}},
		schemes: []string{"udp"}, port: true, browses: true,
		mute: true,
		words: map[string]string{
			"parameter.state": "Stackchan/State", "parameter.face": "Stackchan/Face", "parameter.mouth": "Stackchan/Mouth",
			"chatbox.speech": "on", "chatbox.notifications": "on", "chatbox.typing": "on",
			// The numbers are those of VRChat's built-in gestures.
			"gesture.wave": "1", "gesture.point": "3", "gesture.celebrate": "4", "gesture.dance": "5",
		},
		make: newVRChat,
	}
	for i, s := range states() {
		k.words["state."+string(s)] = strconv.Itoa(i)
	}
	for i, e := range agent.Emotions() {
		k.words["face."+e.Name] = strconv.Itoa(i)
	}
	for _, f := range feelings()[1:] {
		k.words["feeling."+f] = "Stackchan/" + capitalize(f)
	}
	return k
}

// newVRChat returns the program. Its OSCQuery tree describes the messages that the relay sends and receives.
func newVRChat(o *programConfig) (program, error) {
	tree := &oscNode{Path: "/", Description: "what " + o.appliance + " tells VRChat"}
	tree.add("/avatar", "", oscReceived, "")
	tree.add(vrchatAvatar, "s", oscReceived, "The avatar was changed: everything is sent again.")
	tree.add(vrchatInput, "sTT", oscSent, "Sentences, notifications and questions.")
	tree.add(vrchatTyping, "T", oscSent, "The agent works.")
	for _, key := range slices.Sorted(maps.Keys(o.words.table)) {
		word, types := o.words.get(key), "f"
		category, _, _ := strings.Cut(key, ".")
		_, err := strconv.ParseInt(word, 10, 32)
		switch isNumber := err == nil; {
		case category == "gesture" && isNumber:
			word, types = vrchatEmote, "i"
		case key == "parameter.state" || key == "parameter.face":
			types = "i"
		case category == "state" || category == "face":
			if types = "T"; isNumber {
				continue // it is a value of parameter.state or parameter.face
			}
		case category != "feeling" && category != "parameter":
			continue
		}
		if word != "" {
			tree.add(vrchatParameter+word, types, oscSent, "")
		}
	}
	return &vrchat{programConfig: o, query: &oscQuery{tree: tree, received: vrchatAvatar}}, nil
}

// serve implements background.
func (p *vrchat) serve(ctx context.Context) {
	appliance, host, announced := p.network.Instance()
	if announced {
		p.query.serve(ctx, instanceName(appliance, p.Target), host, p.log)
	}
}

// offers implements background.
func (p *vrchat) offers() []mdns.Offer { return p.query.offers() }

func (p *vrchat) open(ctx context.Context, note func(error)) (link, error) {
	address := p.URL
	if address == browseURL {
		var err error
		if address, err = p.findAddress(ctx); err != nil {
			return nil, err
		}
	}
	d, err := openDatagrams(ctx, address, oscMessage(vrchatTyping, oscBool(false)))
	if err != nil {
		return nil, cmp.Or(p.findElsewhere(ctx), err)
	}
	l := &vrchatLink{datagrams: d, words: p.words, query: p.query, note: note, isFound: p.URL == browseURL, sent: map[string]oscValue{}}
	if peer, ok := d.conn.RemoteAddr().(*net.UDPAddr); ok {
		p.query.expect(peer.AddrPort().Addr().Unmap())
	}
	return l, nil
}

// findAddress returns the address of the VRChat that is announced on the local network. If several are
// announced, it returns its latest result if that is one of them, and an error otherwise.
func (p *vrchat) findAddress(ctx context.Context) (string, error) {
	addresses, err := p.browse(ctx)
	switch {
	case err != nil:
		return "", err
	case len(addresses) == 0:
		return "", errors.New("no VRChat announces itself on this network; switch on OSC in VRChat, or set url: udp://ADDRESS:9000")
	case len(addresses) > 1 && !slices.Contains(addresses, p.found):
		return "", fmt.Errorf("several VRChats announce themselves on this network: %s; set url to yours", strings.Join(addresses, ", "))
	case len(addresses) == 1:
		p.found = addresses[0]
	}
	return p.found, nil
}

// findElsewhere returns an error that names the VRChats on other machines. It returns nil if no other
// machine announces a VRChat, or if the owner has configured an address. It browses at most once in
// vrchatHintEvery, and otherwise returns the latest result. Perch sends nothing to those machines: any
// machine on the network can announce itself as VRChat, and would learn what the agents say.
func (p *vrchat) findElsewhere(ctx context.Context) error {
	if p.URL == vrchatURL && time.Now().After(p.hintUntil) {
		p.hint, p.hintUntil = nil, time.Now().Add(vrchatHintEvery)
		if addresses, err := p.browse(ctx); err == nil && len(addresses) > 0 {
			p.hint = fmt.Errorf("VRChat does not listen at %s, but another machine announces it at %s; if that machine is yours, set url: %s",
				vrchatURL, strings.Join(addresses, ", "), addresses[0])
		}
	}
	return p.hint
}

// browse returns the addresses of the VRChats that are announced on the local network, in ascending order.
// An address has the IP address of the machine that has sent the announcement, and not the announced one:
// every VRChat announces 127.0.0.1, and no machine may direct Perch to another machine.
func (p *vrchat) browse(ctx context.Context) (addresses []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, vrchatBrowseTimeout)
	defer cancel()
	all, err := p.network.Browse(ctx, mdns.OSC)
	for _, f := range all {
		from := f.Sender
		isNear := from.Zone() == "" && (from.IsPrivate() || from.IsLinkLocalUnicast() || from.IsLoopback())
		if address := "udp://" + netip.AddrPortFrom(from, uint16(f.Port)).String(); isNear && f.Port >= minPort &&
			strings.HasPrefix(f.Instance, vrchatInstance) && !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	slices.Sort(addresses)
	return addresses, err
}

// vrchatLink is a link to VRChat.
type vrchatLink struct {
	*datagrams
	words  words
	sent   map[string]oscValue // latest parameters that were sent, except for gestures and the mouth; key: name
	chat   chatbox
	emote  time.Time // when the current gesture began; zero if there is no gesture
	repeat time.Time // when everything was last repeated
	level  float64   // how far the mouth is open, from 0 to 1

	query    *oscQuery
	note     func(error) // sets the relay's Status.Note
	isFound  bool        // whether the address was found by browsing
	hasHeard bool        // whether VRChat has sent Perch a message
}

// warning returns the address that was found by browsing, so that the owner can check it, and a note
// that delivery is uncertain, unless VRChat has sent something.
func (l *vrchatLink) warning() (note error) {
	if !l.hasHeard {
		note = l.datagrams.warning()
	}
	if l.isFound {
		note = join(fmt.Errorf("found at %s", l.address), note)
	}
	return note
}

// parameters returns the parameters for a scene. A word for a state or face is either the name of a
// boolean parameter to set, or a number. The number becomes the value of the parameter that the word
// for "parameter.state" or "parameter.face" names.
func (l *vrchatLink) parameters(s Scene) map[string]oscValue {
	parameters := map[string]oscValue{}
	for parameter, word := range map[string]string{"parameter.state": l.words.state(s.State), "parameter.face": l.words.face(s.Expression())} {
		name := l.words.get(parameter)
		switch n, err := strconv.ParseInt(word, 10, 32); {
		case word == "":
		case err != nil:
			parameters[word] = oscBool(true)
		case name != "":
			parameters[name] = oscInt(int32(n))
		}
	}
	for feeling, x := range strengths(s.Mood.Feelings) {
		if name := l.words.feeling(feeling); name != "" {
			parameters[name] = oscFloat(hundredths(x))
		}
	}
	return parameters
}

// hundredths limits x to the range from 0 to 1, and rounds it to two decimal places, the precision
// with which VRChat synchronizes numbers.
func hundredths(x float64) float64 { return math.Round(100*min(max(x, 0), 1)) / 100 }

// setParameters sets l.sent, and returns the messages for the parameters that have changed. A boolean
// parameter that parameters no longer contains is set to false.
func (l *vrchatLink) setParameters(parameters map[string]oscValue) (messages []string) {
	for _, name := range changedKeys(parameters, l.sent) {
		v, ok := parameters[name]
		if !ok {
			v = oscBool(false)
			if l.sent[name].tag != 'T' {
				continue
			}
		}
		messages = append(messages, oscMessage(vrchatParameter+name, v))
	}
	l.sent = parameters
	return messages
}

// isTyping reports whether to show the typing indicator, which means that the agent is working.
func (l *vrchatLink) isTyping(s Scene) bool {
	return l.words.get("chatbox.typing") != "" && (s.State == agent.Thinking || s.State == agent.Working || s.State == agent.Juggling)
}

func (l *vrchatLink) update(_ context.Context, scene, previous Scene) error {
	messages := l.setParameters(l.parameters(scene))
	if typing := l.isTyping(scene); typing != l.isTyping(previous) {
		messages = append(messages, oscMessage(vrchatTyping, oscBool(typing)))
	}
	if scene.Said != previous.Said && l.words.get("chatbox.speech") != "" {
		l.chat.setSpeech(scene.Said)
	}
	if scene.Question != previous.Question && l.words.get("chatbox.notifications") != "" {
		l.chat.notify(scene.Question)
	}
	return l.send(append(messages, l.nextChat()...)...)
}

func (l *vrchatLink) frame(_ context.Context, f *feed.Frame, _ Scene) error {
	switch b := f.Body.(type) {
	case feed.Gesture:
		n, err := strconv.ParseInt(l.words.gesture(b.Name), 10, 32)
		if err != nil {
			return nil // there is no number for this gesture
		}
		l.emote = time.Now()
		return l.send(oscMessage(vrchatParameter+vrchatEmote, oscInt(int32(n))))
	case feed.Notice:
		if l.words.get("chatbox.notifications") == "" {
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
	l.level = hundredths(level)
	return l.send(l.mouth()...)
}

// mouth returns the message for the mouth, if the words contain a parameter for the mouth.
func (l *vrchatLink) mouth() (messages []string) {
	if name := l.words.get("parameter.mouth"); name != "" {
		messages = append(messages, oscMessage(vrchatParameter+name, oscFloat(l.level)))
	}
	return messages
}

// nextChat returns the message with the next text for the chatbox, if a text is queued and chatEvery
// has passed since the last one.
func (l *vrchatLink) nextChat() (messages []string) {
	if text := l.chat.next(time.Now()); text != "" {
		messages = append(messages, oscMessage(vrchatInput, oscText(text), oscBool(true), oscBool(false)))
	}
	return messages
}

func (l *vrchatLink) refreshEvery() time.Duration { return vrchatTick }

// refresh ends a gesture after emoteFor, sends queued texts, and repeats everything when that is due or
// the user has changed the avatar.
func (l *vrchatLink) refresh(_ context.Context, scene Scene) error {
	var messages []string
	hasHeard, hasChanged := l.query.news()
	if hasHeard && !l.hasHeard {
		l.hasHeard = true
		l.note(l.warning())
	}
	if hasChanged {
		l.repeat = time.Time{}
	}
	if !l.emote.IsZero() && time.Since(l.emote) >= emoteFor {
		l.emote = time.Time{}
		messages = append(messages, oscMessage(vrchatParameter+vrchatEmote, oscInt(0)))
	}
	if time.Since(l.repeat) >= vrchatRepeatEvery-vrchatTick/2 { // the tick nearest to the end of the interval
		l.repeat = time.Now()
		for _, name := range slices.Sorted(maps.Keys(l.sent)) {
			messages = append(messages, oscMessage(vrchatParameter+name, l.sent[name]))
		}
		messages = append(messages, l.mouth()...)
		if l.isTyping(scene) {
			messages = append(messages, oscMessage(vrchatTyping, oscBool(true)))
		}
	}
	return l.send(append(messages, l.nextChat()...)...)
}

// close sets the parameters as for an idle agent, but all booleans to false, and closes the
// connection.
func (l *vrchatLink) close() {
	rest := l.parameters(Scene{State: agent.Idle})
	maps.DeleteFunc(rest, func(_ string, v oscValue) bool { return v.tag == 'T' })
	messages := append(l.setParameters(rest), oscMessage(vrchatTyping, oscBool(false)))
	if l.level > 0 {
		l.level = 0
		messages = append(messages, l.mouth()...)
	}
	if !l.emote.IsZero() {
		messages = append(messages, oscMessage(vrchatParameter+vrchatEmote, oscInt(0)))
	}
	l.query.expect(netip.Addr{})
	for _, m := range messages {
		_ = l.send(m) // ignore the error, which may be about an earlier datagram
	}
	l.datagrams.close()
}

// chatbox queues texts for the chatbox: notifications, and the latest sentence.
type chatbox struct {
	notices []string  // notifications and questions, oldest first
	said    string    // latest sentence, or ""
	wrote   time.Time // when next last returned a text
}

func (c *chatbox) setSpeech(text string) { c.said = text }

// notify adds a notification or question. If too many are queued, it drops the oldest.
func (c *chatbox) notify(text string) {
	c.notices = append(c.notices, text)
	c.notices = c.notices[max(0, len(c.notices)-maxChatNotices):]
}

// next removes and returns the text to write now. It returns "" if no text is queued, or chatEvery has
// not passed since the last one.
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

// chatText shortens a text to the limits of the chatbox.
func chatText(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > maxChatLines {
		lines = append(lines[:maxChatLines-1], strings.Join(lines[maxChatLines-1:], " "))
	}
	text = strings.Join(lines, "\n")
	if len(utf16.Encode([]rune(text))) <= maxChatUnits {
		return text
	}
	units := 1 // the ellipsis
	for i, r := range text {
		if units += utf16.RuneLen(r); units > maxChatUnits {
			return text[:i] + "…"
		}
	}
	return text
}

// strengths returns the strength of each feeling, from 0 to 1. The key is the name of the feeling.
func strengths(f event.Feelings) map[string]float64 {
	return map[string]float64{"concern": f.Concern, "celebration": f.Celebration, "patience": f.Patience, "curiosity": f.Curiosity,
		"empathy": f.Empathy, "uncertain": f.Uncertain}
}
