package appliance_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	openaibrain "perch/agent/openai"
	"perch/agent/thinker"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/socket"
	"perch/voice/espeak"
	"perch/voice/openai"
	"perch/voice/wyoming"
)

// apply applies the configuration of an appliance with a change, and returns the keys that need a restart.
func apply(h *appliancetest.Appliance, change func(*config.Config)) (restart []string) {
	h.T.Helper()
	c := *h.Config()
	change(&c)
	return must.Value(h.Apply(&c))(h.T)
}

// TestAChangeIsHeardInTheNextTurn changes the voice, the persona and a relay while a robot speaks. It checks
// that the running turn ends with the old voice and without late packets, and that the next turn has the new
// voice and persona and is shown by the new relay's program.
func TestAChangeIsHeardInTheNextTurn(t *testing.T) {
	t.Parallel()
	before, after := appliancetest.NewAvatar(t, ""), appliancetest.NewAvatar(t, "")
	c := appliancetest.Config()
	c.Relays = []config.Relay{{Kind: "warudo", Name: "before", URL: "ws://" + before.Address}}
	p := appliancetest.NewPeers(t)
	p.Words, p.Every = nil, 50*time.Millisecond // the model writes faster than the robot speaks
	for i := range 10 {
		p.Words = append(p.Words, " This", " is", " sentence", fmt.Sprintf(" %d.", i))
	}
	p.Use(&c)
	speaks(&c, "old")
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	h.Eventually("the program is connected", func() bool { return h.Part("relay before").OK })
	robot := h.StartRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it", "what time is it")})
	h.Await(robot, "it speaks", appliancetest.Shows("This is sentence 0."))
	restart := apply(h, func(c *config.Config) {
		speaks(c, "new")
		c.Persona.Name = "Mira"
		c.Relays = []config.Relay{{Kind: "warudo", Name: "after", URL: "ws://" + after.Address}}
	})
	if len(restart) > 0 {
		t.Errorf("%v need a restart", restart)
	}
	if robot.HasShown("This is sentence 9.") {
		t.Fatal("the turn was over before the change")
	}
	told := len(before.All())
	var voices []string
	h.Eventually("two turns are spoken", func() bool {
		voices = nil
		_, spoken := p.Requests()
		for _, s := range spoken {
			if strings.HasPrefix(s.Text, "This is") { // a sentence of the model, not a phrase of the appliance
				voices = append(voices, s.Voice)
			}
		}
		return len(voices) == 20
	})
	if want := slices.Concat(slices.Repeat([]string{"old"}, 10), slices.Repeat([]string{"new"}, 10)); !slices.Equal(voices, want) {
		t.Errorf("the sentences are spoken by %v", voices)
	}
	if prompts, _ := p.Requests(); len(prompts) != 2 || strings.Contains(prompts[0], "Mira") || !strings.Contains(prompts[1], "Mira") {
		t.Errorf("the model was asked %q", prompts)
	}
	h.Eventually("the new program shows the new turn", func() bool { return len(after.Containing(`"data":"This is sentence 9`)) > 0 })
	if n := len(before.Containing(`"data":"This is sentence 9`)); n > 0 || h.Part("relay before").Name != "" {
		t.Errorf("the program that was taken away was told %d of %d words", n, told)
	}
	h.Eventually("the robot has said all", func() bool {
		shown := appliancetest.ObservationsOf[simrobot.SentenceShown](robot)
		return len(slices.DeleteFunc(shown, func(s simrobot.SentenceShown) bool { return s.Text != "This is sentence 9." })) == 2
	})
	robot.Off()
	robot.CheckTiming(t)
}

// TestChangesTakeEffect checks that changes of several keys take effect without a restart, except changes of
// addresses to listen on.
func TestChangesTakeEffect(t *testing.T) {
	t.Parallel()
	c := appliancetest.Config()
	c.Skins.Key = appliancetest.Key
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	h.WaitForTools("a0b1c2d3e4f5")
	said := func(part string) func(simrobot.Observation) bool {
		return appliancetest.Match(func(s simrobot.SentenceShown) bool { return strings.Contains(s.Text, part) })
	}
	hear := func(text string) {
		t.Helper()
		must.Succeed(t, h.Talk.InjectText(t.Context(), "a0b1c2d3e4f5", text))
	}

	apply(h, func(c *config.Config) { c.Language = "de" })
	hear("wie spät ist es")
	h.Await(robot, "German", said(" Uhr"))

	p := appliancetest.NewPeers(t)
	apply(h, func(c *config.Config) {
		own := *c
		p.Use(&own)
		c.Brains = own.Brains
	})
	hear("wie spät ist es")
	h.Await(robot, "the model's answer", said("It is three."))
	if got := h.Part("brain openai"); !got.OK {
		t.Errorf("the parts have the brain as %+v", got)
	}

	apply(h, func(c *config.Config) {
		c.Rules = loaded(t, appliancetest.WriteConfig(t, "rules: [{when: {event: knock}, do: [{emotion: surprised}]}]")).Rules
	})
	robot.SendSensorEvent("knock", `{"door":"front"}`)
	h.Await(robot, "the rule's face", appliancetest.Match(func(f simrobot.EmotionShown) bool { return f.Emotion != "neutral" }))

	// In a change of several keys, those that need no restart take effect at once.
	restart := apply(h, func(c *config.Config) {
		c.Listen, c.MQTT.Listen, c.Memory.Most = []string{"127.0.0.1:1"}, "127.0.0.1:2", 7
	})
	if !slices.Equal(restart, []string{"listen", "mqtt.listen"}) {
		t.Errorf("%v need a restart", restart)
	}
	if most := h.Memory.Stats(time.Now()).Most; most != 7 {
		t.Errorf("the memory holds %d", most)
	}
	if again := apply(h, func(c *config.Config) { c.Listen = []string{"127.0.0.1:1"} }); !slices.Equal(again, []string{"listen"}) {
		t.Errorf("later, %v need a restart", again)
	}
}

// TestAConfigurationThatCannotBeFollowed checks that Apply changes nothing if it returns an error.
func TestAConfigurationThatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	running := h.Config()
	for name, broken := range map[string]func(*config.Config){
		"a brain": func(c *config.Config) {
			c.Brains = []config.Engine{appliancetest.OpenAI(openaibrain.Options{URL: "nowhere", Model: "m"})}
		},
		"a synthesizer": func(c *config.Config) {
			c.Speech.Synthesizers = []config.Engine{{Kind: "openai", Options: &openai.SynthesizerKeys{URL: "nowhere"}}}
		},
		"a relay":   func(c *config.Config) { c.Relays = []config.Relay{{Kind: "nothing"}} },
		"a key":     func(c *config.Config) { c.Skins.KeyFile = "/nowhere" },
		"a persona": func(c *config.Config) { c.Persona.File = "/nowhere" },
	} {
		c := *running
		c.Memory.Most, c.Language = 7, "de"
		broken(&c)
		if restart, err := h.Apply(&c); err == nil || restart != nil {
			t.Errorf("%s: %v %v", name, restart, err)
		}
		if h.Config() != running || h.Memory.Stats(time.Now()).Most != running.Memory.Most || h.Characters.Speech().Language != "en" ||
			!h.Part("brain reflex").OK {
			t.Errorf("%s: it has changed", name)
		}
	}
}

// TestAChangedKey checks that connections with the old key are closed and the old key is refused, and that
// the connection of a program on this machine, which needs no key, stays open.
func TestAChangedKey(t *testing.T) {
	t.Parallel()
	c := appliancetest.Config()
	c.Skins.Key, c.Bridge.Key = appliancetest.Key, appliancetest.Key
	h := appliancetest.Start(t, c, t.TempDir())
	dial := func(url, key string) (*socket.Conn, error) {
		return socket.Dial(t.Context(), strings.Replace(url, "http", "ws", 1), socket.Options{Header: http.Header{
			"Sec-Websocket-Protocol": {"vtuber.v1, bearer." + base64.RawURLEncoding.EncodeToString([]byte(key))}}})
	}
	gone := make(chan string, 3)
	for _, path := range []string{"/v1/vtuber/ws", "/client-ws"} {
		conn := must.Value(dial(h.URL(path), appliancetest.Key))(t)
		defer conn.Drop()
		go func() {
			for {
				if _, _, err := conn.Receive(); err != nil {
					gone <- path
					return
				}
			}
		}()
	}
	here := must.Value(dial(h.LocalURL()+"v1/vtuber/ws", appliancetest.Key))(t)
	defer here.Drop()
	stays := make(chan struct{})
	go func() {
		defer close(stays)
		for {
			if _, _, err := here.Receive(); err != nil {
				return
			}
		}
	}()
	apply(h, func(c *config.Config) {
		c.Skins.Key, c.Bridge.Key = "another key for skins", "another key for the bridge"
	})
	for range 2 {
		select {
		case <-gone:
		case <-time.After(30 * time.Second):
			t.Fatal("a connection of the old key stays")
		}
	}
	for path, key := range map[string]string{"/v1/models": "another key for skins", "/api/perception/state": "another key for the bridge"} {
		h.Expect(http.StatusUnauthorized, "wrong_key", http.MethodGet, path, "", "Authorization", "Bearer "+appliancetest.Key)
		h.Expect(http.StatusOK, "", http.MethodGet, path, "", "Authorization", "Bearer "+key)
	}
	select {
	case <-stays:
		t.Error("a program of this machine was let go")
	default:
	}
}

// speaks sets the voice of the configured synthesizer.
func speaks(c *config.Config, name string) {
	k := *c.Speech.Synthesizers[0].Options.(*openai.SynthesizerKeys)
	k.Voice = name
	c.Speech.Synthesizers = []config.Engine{{Kind: "openai", Options: &k}}
}

// TestNothingIsLeftOfChanges checks that fifty changes of engines and relays while a robot talks leave no
// goroutines behind.
func TestNothingIsLeftOfChanges(t *testing.T) {
	c := appliancetest.Config()
	avatar := appliancetest.NewAvatar(t, "")
	p := appliancetest.NewPeers(t)
	p.Use(&c)
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it")})
	change := func(i int) {
		apply(h, func(c *config.Config) {
			p.Use(c)
			c.Speech.Recognizers[0].Options.(*wyoming.RecognizerKeys).Within = time.Duration(10+i) * time.Second
			c.Speech.Synthesizers = append(c.Speech.Synthesizers, config.Engine{Kind: "espeak", Options: &espeak.Options{Speed: 150 + i}})
			c.Brains[0].Options.(*thinker.BrainKeys[openaibrain.Options]).Model.MaxTokens, c.Memory.Most = 100+i, 100+i
			c.Relays = []config.Relay{{Kind: "warudo", Name: fmt.Sprintf("relay %d", i), URL: "ws://" + avatar.Address}}
		})
	}
	change(0)
	h.Eventually("the relay is connected", func() bool { return h.Part("relay relay 0").OK })
	base := runtime.NumGoroutine()
	talking := h.StartRobot(simrobot.Options{Say: appliancetest.Sentences(t, "what time is it", "what time is it")})
	for i := range 50 {
		change(i + 1)
	}
	h.Eventually("the last relay is connected", func() bool { return h.Part("relay relay 50").OK })
	talking.Off()
	p.CloseConnections()
	const spare = 8 // goroutines of connections that stay open for a while
	h.Eventually("the goroutines are as many as before", func() bool { return runtime.NumGoroutine() <= base+spare })
}
