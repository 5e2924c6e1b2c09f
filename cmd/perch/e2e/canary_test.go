package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"perch/agent/acp"
	"perch/agent/anthropic"
	assistbrain "perch/agent/assist"
	openaibrain "perch/agent/openai"
	"perch/agent/reflex"
	"perch/agent/thinker"
	"perch/cmd/perch/appliance"
	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/doctor"
	"perch/cmd/perch/machine"
	"perch/firmware-tools/simrobot"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/socket"
	"perch/store/archive/archivetest"
	"perch/voice/assist"
	"perch/voice/elevenlabs"
	"perch/voice/espeak"
	"perch/voice/openai"
	"perch/voice/sphinx"
)

// canaries holds planted secrets, and the recorded output of the program, in which search looks for them.
type canaries struct {
	mu      sync.Mutex
	planted map[string]string        // where each secret was planted; key: secret
	told    map[string]*bytes.Buffer // recorded output; key: name of the source
}

func newCanaries() *canaries {
	return &canaries{planted: map[string]string{}, told: map[string]*bytes.Buffer{}}
}

// plant returns a new secret, which is planted at the place where.
func (c *canaries) plant(where string) string {
	secret := "canary" + rand.Text()[:20]
	c.know(where, secret)
	return secret
}

// know adds a secret that was generated elsewhere.
func (c *canaries) know(where, secret string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planted[secret] = where
}

// hear returns a writer that records output under a name.
func (c *canaries) hear(name string) io.Writer { return teller{c, name} }

// teller implements canaries.hear.
type teller struct {
	c    *canaries
	name string
}

func (t teller) Write(p []byte) (int, error) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.c.told[t.name] == nil {
		t.c.told[t.name] = &bytes.Buffer{}
	}
	return t.c.told[t.name].Write(p)
}

// search reports every secret that is in the recorded output: unchanged, escaped for a URL, in two forms of base64,
// or two thirds of the secret.
func (c *canaries) search(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, told := range c.told {
		for secret, where := range c.planted {
			forms := []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)),
				base64.RawURLEncoding.EncodeToString([]byte(secret)),
				secret[:len(secret)*2/3], secret[len(secret)/3:]}
			for _, form := range forms {
				if at := bytes.Index(told.Bytes(), []byte(form)); at >= 0 {
					t.Errorf("%s tells the secret of %s: ...%s...", name, where, told.Bytes()[max(0, at-200):min(told.Len(), at+len(form)+60)])
					break
				}
			}
		}
	}
}

// indiscreet starts a server that refuses every request, and repeats the keys and the URL in its error.
func indiscreet(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			homeAssistant(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		said := fmt.Sprintf("wrong key: %s %s%s %s at %s", r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.Header.Get("Xi-Api-Key"),
			r.Host, r.RequestURI)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"type": "authentication_error", "message": said}, "detail": said})
	}))
	t.Cleanup(s.Close)
	return s
}

// homeAssistant serves Home Assistant's WebSocket API. It refuses the token, and repeats it in the error.
func homeAssistant(w http.ResponseWriter, r *http.Request) {
	conn, err := socket.Accept(w, r, socket.Options{MaxMessage: 1 << 16})
	if err != nil {
		return
	}
	defer conn.Drop()
	if conn.SendText([]byte(`{"type":"auth_required","ha_version":"2026.11"}`)) != nil {
		return
	}
	_, text, err := conn.Receive()
	if err == nil {
		quoted, _ := json.Marshal(string(text)) // encoding a string cannot fail
		_ = conn.SendText([]byte(`{"type":"auth_invalid","message":` + string(quoted) + `}`))
		_, _, _ = conn.Receive()
	}
}

// TestNoSecretIsEverTold plants a secret at every place where there can be one, makes requests and commands that
// succeed and fail, and searches all output of the program for the secrets.
func TestNoSecretIsEverTold(t *testing.T) {
	secrets := newCanaries()
	elsewhere := indiscreet(t)
	file := func(where string) string {
		path := filepath.Join(t.TempDir(), "secret")
		must.Succeed(t, os.WriteFile(path, []byte(secrets.plant(where)+"\n"), 0o600))
		return path
	}
	c := indiscreetEngines(elsewhere.URL, secrets, file)
	c.TLS = goodFor(t, t.TempDir(), "perch.local", month)
	c.Skins.Key, c.Bridge.KeyFile = secrets.plant("skins.key"), file("bridge.key_file")
	c.MQTT.Broker, c.MQTT.Listen = config.EmbeddedBroker, appliancetest.FreeAddress(t)
	c.Robots.ShareTranscripts = true
	data := t.TempDir()
	h := &running{appliancetest.Start(t, c, data, func(o *appliance.Options) { o.Overlay = indiscreetFile(t, secrets) })}
	for _, name := range []string{"admin-token", "token-key", datadir.MQTTPasswordFile} {
		secrets.know(name, h.Secret(name))
	}
	bridge := strings.TrimSpace(string(archivetest.Read(t, c.Bridge.KeyFile)))
	keys := map[lock]string{ownersToken: h.OwnerToken(), keyOfBridge: bridge, keyOfSkins: c.Skins.Key}
	v := clients{t, h, secrets, keys}
	leave := v.listenEverywhere()
	h.robotTalks(secrets)
	v.tryEveryRoute(trusts(t, c.TLS.Certificate))
	v.guessAtMQTT()
	v.commands()
	v.panics()
	leave()
	h.Stop()
	_, _ = io.WriteString(secrets.hear("the log"), h.Logged.String())
	for _, want := range []string{"a request panicked", "does not work", "a robot's request was refused"} {
		if !strings.Contains(h.Logged.String(), want) {
			t.Errorf("the log does not hold %q: that way was not gone", want)
		}
	}
	for _, name := range []string{"the routes", "server-sent events", "a skin's frames", "MQTT", "the commands", "a recording"} {
		if told := secrets.told[name]; told == nil || told.Len() < 100 {
			t.Errorf("nothing is told by %s: the test does not hear it", name)
		}
	}
	secrets.search(t)
}

// indiscreetFile returns an overlay over a configuration file that contains secrets in every form.
func indiscreetFile(t *testing.T, secrets *canaries) *config.Overlay {
	at := func(where string) string { return secrets.plant("a configuration file's " + where) }
	text := "skins: {key: " + at("key in brackets") + "} # key: " + at("comment") + "\nbridge:\n  key: \"" + at("quoted key") +
		"\"\nmqtt:\n  password: '" + at("password") + "'\n  broker: mqtt://me:" + at("address") + "@127.0.0.1\nbrains:\n" +
		"- {kind: openai, url: \"http://127.0.0.1:9/v1?key=" + at("query") + "\", model: m, extra: {api_key: " + at("extra") + "}}\n" +
		"- kind: acp\n  command: [x, --token, " + at("argument") + "]\n  env: {OTHER: " + at("environment") + "}\n# password: " +
		at("line of comment") + "\nwrong: &a " + at("anchor") + "\nother: {token: *a}\n"
	data := t.TempDir()
	return &config.Overlay{Source: config.Source{File: appliancetest.WriteConfig(t, text), Overlay: filepath.Join(data, config.OverlayFile)}, Data: data}
}

// indiscreetEngines returns a configuration with an engine of each kind that can have secrets, before the engines
// that work. The first ones use the server at.
func indiscreetEngines(at string, secrets *canaries, file func(string) string) config.Config {
	c := appliancetest.Config()

	c.Speech.Recognizers = []config.Engine{
		{Kind: "openai", Options: &openai.RecognizerKeys{URL: at + "/v1", Model: "m", KeyFile: file("recognizer openai key_file")}},
		{Kind: "assist", Options: &assist.RecognizerKeys{URL: at, Token: secrets.plant("recognizer assist token")}},
		{Kind: "sphinx", Options: &sphinx.Keys{}}}
	c.Speech.Synthesizers = []config.Engine{
		{Kind: "openai", Options: &openai.SynthesizerKeys{URL: at + "/v1", Voice: "v", Key: secrets.plant("synthesizer openai key")}},
		{Kind: "elevenlabs", Options: &elevenlabs.Options{URL: at + "/v1", Voice: "abcdefghijklmnopqrst", KeyFile: file("synthesizer elevenlabs key_file")}},
		{Kind: "assist", Options: &assist.SynthesizerKeys{URL: at, TokenFile: file("synthesizer assist token_file")}},
		{Kind: "espeak", Options: &espeak.Options{Voice: "en-us"}}}
	nobody := secrets.plant("a key in the address of nobody")
	c.Brains = []config.Engine{
		appliancetest.OpenAI(openaibrain.Options{URL: at + "/v1", Model: "m", Key: secrets.plant("brain openai key")},
			thinker.ToolServer{Name: "web", URL: at + "/" + secrets.plant("mcp path") + "?k=" + secrets.plant("mcp query"), Key: secrets.plant("mcp key")},
			thinker.ToolServer{Name: "here", Command: []string{"sh", "-c", `echo "$HOUSE_KEY" >&2; exit 1`},
				Env: map[string]string{"HOUSE_KEY": secrets.plant("mcp env")}}),
		appliancetest.OpenAI(openaibrain.Options{URL: at + "/v1?api_key=" + secrets.plant("brain openai query"), Model: "m"}),
		appliancetest.OpenAI(openaibrain.Options{URL: "http://127.0.0.1:9/v1?api_key=" + nobody, Model: "m"}),
		appliancetest.Anthropic(anthropic.Options{URL: at, Model: "m", Key: secrets.plant("brain anthropic key")}),
		{Kind: "assist", Options: &assistbrain.Options{URL: at, Token: secrets.plant("brain assist token")}},
		{Kind: "acp", Options: &acp.Options{Command: []string{"sh", "-c", `echo "$AGENT_KEY" >&2; exit 1`}, Env: map[string]string{"AGENT_KEY": secrets.plant("brain acp env")}}},
		{Kind: "reflex", Options: &reflex.Keys{}}}
	c.BrainDeep = []config.Engine{{Kind: "openai", Options: &openaibrain.Options{URL: at + "/v1", Model: "m", Key: secrets.plant("brain_deep key")}}}
	return c
}

// robotTalks makes a robot check in and talk, so that every engine is used. It adds the tokens that robots receive
// to secrets.
func (h *running) robotTalks(secrets *canaries) {
	h.T.Helper()
	r := h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(h.T, "what time is it")})
	for _, turn := range r.Stats().Turns {
		if !turn.Answered {
			h.T.Errorf("the turn was not answered: %+v", turn)
		}
	}
	token := h.Token("/xiaozhi/ota/", "Device-Id", "02:00:00:00:00:09", "Client-Id", "c")
	secrets.know("a robot's token", token)
	conn, err := socket.Dial(h.T.Context(), "ws"+strings.TrimPrefix(h.URL("/xiaozhi/v1/"), "http"),
		socket.Options{MaxMessage: 1 << 16, Header: http.Header{
			"Device-Id": {"02:00:00:00:00:09"}, "Client-Id": {"c"}, "Authorization": {"Bearer " + token}}})
	must.Succeed(h.T, err)
	defer conn.Drop()
	recorded := make(chan struct{})
	go func() { // receives the recording of this talk
		defer close(recorded)
		r, err := http.NewRequestWithContext(h.T.Context(), http.MethodGet, h.URL("/api/v1/devices/020000000009/record"), nil)
		if err != nil {
			return
		}
		r.Header.Set("Authorization", "Bearer "+h.OwnerToken())
		answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			return
		}
		defer answer.Body.Close()
		_, _ = io.Copy(secrets.hear("a recording"), answer.Body) // until the channel is closed
	}()
	time.Sleep(100 * time.Millisecond) // real time, in which the recording usually begins; the test does not depend on it
	camera := func() string {
		if err := conn.SendText(
			[]byte(`{"type":"hello","version":1,"features":{"mcp":true},"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`)); err != nil {
			h.T.Fatal(err)
		}
		for {
			_, text, err := conn.Receive()
			must.Succeed(h.T, err)
			var m struct {
				Payload struct {
					Params struct {
						Capabilities struct{ Vision struct{ Token string } }
					}
				}
			}
			if json.Unmarshal(text, &m) == nil && m.Payload.Params.Capabilities.Vision.Token != "" {
				return m.Payload.Params.Capabilities.Vision.Token
			}
		}
	}
	secrets.know("a camera's token", camera())
	// Another message for the recording.
	must.Succeed(h.T, conn.SendText([]byte(`{"type":"abort"}`)))
	conn.Drop()
	<-recorded
	secrets.know("a download's ticket", h.firmwareTicket())
	var told struct{ Token string }
	h.Admin(http.MethodPost, "/api/v1/devices/a0b1c2d3e4f5/token", "{}", &told)
	secrets.know("a robot's token that its owner was told", told.Token)
}

// firmwareTicket returns the ticket for a firmware image that a check-in has returned, after a download with it.
func (h *running) firmwareTicket() string {
	h.T.Helper()
	image := simrobot.Image("9.9.9", 1<<16)
	h.Admin(http.MethodPost, "/api/v1/firmware?board=a-board", string(image), nil)
	h.Admin(http.MethodPost, "/api/v1/firmware/"+hashOf(image)+"/rollout", `{"boards":["a-board"],"percent":100,"auto":true}`, nil)
	for range 5 { // the first check-ins only report the running firmware
		_, text := h.Request(http.MethodPost, "/xiaozhi/ota/", `{"application":{"name":"x","version":"1.0.0","elf_sha256":"`+strings.Repeat("a",
			64)+`"},"board":{"type":"a-board","name":"a-board"},"ota":{"label":"ota_0"}}`,
			"Device-Id", "02:00:00:00:00:09", "Client-Id", "c", "User-Agent", "a-board/1.0.0")
		if _, after, offered := strings.Cut(text, "?r="); offered {
			pass, _, _ := strings.Cut(after, `"`)
			parts := strings.Split(pass, ".")
			answer, _ := httpservertest.Ask(h.T, http.MethodGet, h.URL(fmt.Sprintf("/xiaozhi/ota/firmware/%x.bin?r=%s", sha256.Sum256(image), pass)), "")
			if answer.StatusCode != http.StatusOK {
				h.T.Errorf("a ticket opens with %s", answer.Status)
			}
			return parts[len(parts)-1]
		}
	}
	h.T.Fatal("the robot was offered no image")
	return ""
}

// clients makes the requests of clients with right and wrong keys, and records the responses.
type clients struct {
	t       *testing.T
	h       *running
	secrets *canaries
	keys    map[lock]string // the right key of each lock
}

// listenEverywhere records what the appliance sends unrequested, on event streams, to a skin and over MQTT, until
// leave is called.
func (v clients) listenEverywhere() (leave func()) {
	v.t.Helper()
	var all sync.WaitGroup
	var ends []func()
	for path, l := range map[string]lock{"/api/v1/events": ownersToken, "/api/perception/feed": keyOfBridge} {
		conn := must.Value(net.Dial("tcp", v.h.Listeners.Addresses()[0]))(v.t)
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: perch.local\r\nAuthorization: Bearer %s\r\n\r\n", path, v.keys[l])
		ends = append(ends, func() { _ = conn.Close() })
		all.Go(func() { _, _ = io.Copy(v.secrets.hear("server-sent events"), conn) })
	}
	skin, err := socket.Dial(v.t.Context(), "ws"+strings.TrimPrefix(v.h.URL("/v1/vtuber/ws"), "http"),
		socket.Options{MaxMessage: 1 << 20, Header: http.Header{"Authorization": {"Bearer " + v.keys[keyOfSkins]}}})
	must.Succeed(v.t, err)
	must.Succeed(v.t, skin.SendText([]byte(`{"type":"subscribe","states":"all"}`)))
	ends = append(ends, skin.Drop)
	all.Go(func() {
		for {
			_, text, err := skin.Receive()
			if err != nil {
				return
			}
			_, _ = v.secrets.hear("a skin's frames").Write(append(text, '\n'))
		}
	})
	ends = append(ends, v.subscribe(&all))
	return func() {
		for _, end := range ends {
			end()
		}
		all.Wait()
	}
}

// subscribe records the messages of all topics of the broker until leave is called.
func (v clients) subscribe(all *sync.WaitGroup) (leave func()) {
	v.t.Helper()
	v.h.Eventually("the broker runs", func() bool { return v.h.Mirror.Status().Connected })
	conn := must.Value(mqttLogin(v.h.Config().MQTT.Listen, 4, "all", config.MQTTUser, v.h.Secret(datadir.MQTTPasswordFile)))(v.t)
	_ = conn.SetDeadline(time.Time{})
	must.Value(conn.Write(mqttPacket(0x82, []byte("\x00\x01\x00\x01#\x00\x00\x06$SYS/#\x00"))))(v.t) // SUBSCRIBE
	all.Go(func() { _, _ = io.Copy(v.secrets.hear("MQTT"), conn) })
	return func() { _ = conn.Close() }
}

// tryEveryRoute sends requests to each route with the right key, and with wrong keys, which are secrets, too.
func (v clients) tryEveryRoute(known *tls.Config) {
	v.t.Helper()
	out := v.secrets.hear("the routes")
	k := &prober{t: v.t, h: v.h, known: known, told: func(text string) { _, _ = io.WriteString(out, text) }}
	for _, s := range v.h.Listeners.Servers {
		for _, r := range s.Server.Handler.(*gin.Engine).Routes() {
			route := r.Method + " " + r.Path
			l, _ := lockOf(route)
			if strings.HasPrefix(r.Path, "/xiaozhi/ota") || strings.HasSuffix(r.Path, "/record") || strings.HasSuffix(r.Path, "/token") ||
				r.Method == http.MethodDelete {
				continue // routes that return tokens, and the recording, which robotTalks records
			}
			for _, body := range []string{`{}`,
				`{"text":"what time is it","content":"what time is it","fact":"tea","question":"what time is it","robot":"a0b1c2d3e4f5","model":"perch","messages":[{"role":"user","content":"what time is it"}]}`, `{"text":`, `{"set":{"name":"x","mqtt.password":"y","brains":[{"kind":"openai","key":"••••••"}]}}`} {
				k.at(s, probe{route: route, body: body, header: bearer(v.keys[l])})
				if r.Method != http.MethodPost {
					break
				}
			}
			if s.Key == "local" || s.Key == "" {
				continue
			}
			wrong := v.secrets.plant("a wrong key at " + route)
			k.at(s, probe{route: route, header: append(bearer(wrong), "X-Admin-Token", wrong, "Cookie", "session="+wrong)})
			k.at(s, probe{route: route, query: "token=" + wrong + "&key=" + wrong + "&authorization=Bearer+" + wrong + "&r=" + wrong})
			k.at(s, probe{route: route, header: []string{"Sec-Websocket-Protocol", "bearer." + base64.RawURLEncoding.EncodeToString([]byte(wrong))}})
			k.at(s, probe{route: route, header: append(bearer(wrong), "Device-Id", "a0:b1:c2:d3:e4:f5", "Client-Id", wrong)})
		}
	}
}

// guessAtMQTT tries wrong passwords at the broker.
func (v clients) guessAtMQTT() {
	for _, user := range []string{config.MQTTUser, "admin"} {
		if conn, err := mqttLogin(v.h.Config().MQTT.Listen, 4, "a-client", user, v.secrets.plant("a wrong password at the broker")); err == nil {
			conn.Close()
			v.t.Error("a wrong password opens the broker")
		}
	}
}

// panics sends requests whose handlers panic or fail.
func (v clients) panics() {
	e := v.h.Listeners.Servers[0].Server.Handler.(*gin.Engine)
	wrong := v.secrets.plant("a key of a request that panics")
	e.GET("/test/panic", func(c *gin.Context) { panic("a test has it so") })
	e.GET("/test/fails", func(c *gin.Context) { _ = c.Error(fmt.Errorf("a test has it so")) })
	for _, path := range []string{"/test/panic", "/test/fails"} {
		status, text := v.h.Request(http.MethodGet, path+"?token="+wrong, "", "Authorization", "Bearer "+wrong)
		_, _ = io.WriteString(v.secrets.hear("the routes"), text)
		if status != http.StatusInternalServerError || strings.Contains(text, "a test") {
			v.t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// commands runs commands, and checks configurations whose faults contain secrets.
func (v clients) commands() {
	v.t.Helper()
	out := v.secrets.hear("the commands")
	tell := func(args ...string) {
		_ = execute(v.t.Context(), v.t, out, out, args...)
	}
	v.t.Setenv("PERCH_TOKEN", v.secrets.plant("PERCH_TOKEN"))
	data := v.h.Data
	for _, line := range []string{"robot list", "robot say a0b1c2d3e4f5 hello", "notification send tea", "robot adopt 123456", "robot forget 020000000001", "version", "help"} {
		args := strings.Fields(line)
		tell(append(args, "--data", data)...)
		tell(append(args, "--url", v.h.URL(""))...)
		tell(append(args, "--url", "http://user:"+v.secrets.plant("a password in --url")+"@127.0.0.1:9")...)
	}
	p := v.secrets.plant
	for _, text := range []string{
		"bridge: {key: [" + p("a key that is a list") + "]}",
		"bridge: " + p("a key where keys belong"),
		"skins: {key: {x: " + p("a key that is a map") + "}}",
		"skins: {key: \"" + p("a key without its end"),
		"skins: {kye: " + p("a key of an unknown name") + "}",
		"mqtt: {broker: \"mqtt://user:" + p("a password in mqtt.broker") + "@192.168.1.9\"}",
		"mqtt: {broker: \"mqtt://user:" + p("a password in a bad mqtt.broker") + "@192.168.1.9:x\"}",
		"brains: [{kind: openai, url: \"ftp://u:" + p("a password in a bad url") + "@h/v1?key=" + p("a query of a bad url") + "\", model: m}]",
		"brains: [{kind: openai, url: \"http://u:" + p("a password in a url that cannot be read") + "@h :x/v1\", model: m}]",
		"brains: [{kind: openai, url: \"http://h/v1\", model: m, key: " + p("one of two keys") + ", key_file: /nowhere}]",
		"brains: [{kind: assist, url: \"http://u:" + p("a password in a url of assist") + "@h\", token: \"" + p("a token with a space") + " x\"}]",
		"brains: [{kind: assist, url: \"nonsense://u:" + p("a password in a bad url of assist") + "@h\", token: t}]",
		"brains: [{kind: anthropic, url: \"ftp://u:" + p("a password in a bad url of anthropic") + "@h\", model: m, key: k}]",
		"brains: [{kind: acp, command: [x], env: " + p("an env that is a text") + "}]",
		"brains: [{kind: openai, url: \"http://h/v1\", model: m, mcp: [{name: x, url: \"ftp://u:" + p("a password in a bad url of mcp") + "@h\"}]}]",
		"brains: [{kind: openai, url: \"http://h/v1\", model: m, mcp: [{name: x, url: \"http://h :1/" + p("a path in a bad url of mcp") + "\"}]}]",
		"speech: {synthesizers: [{kind: openai, url: \"ftp://u:" + p("a password in a bad url of speech") + "@h/v1\"}]}",
		"speech: {recognizers: [{kind: wyoming, url: \"tcp://u:" + p("a password in a url of wyoming") + "@h:x\"}]}",
		"public_url: http://u:" + p("a password in public_url") + "@h:80",
		"allowed_origins: [\"https://u:" + p("a password in an origin") + "@h/x\"]",
	} {
		path := appliancetest.WriteConfig(v.t, text)
		if code := execute(v.t.Context(), v.t, out, out, "check-config", path); code != exitUsage {
			v.t.Errorf("no fault: %s", text)
			continue
		}
		tell("serve", "--config", path)
		tell("doctor", "--config", path)
	}
	for _, name := range []string{"PERCH_SKINS_KEY_X", "PERCH_BRAINS_0_ENV", "PERCH_SKINS", "PERCH_BRAINS_0_EXTRA"} {
		_, err := appliancetest.Load("", name+"="+p("the variable "+name))
		fmt.Fprintln(out, err)
	}
	d := doctor.New(doctor.Options{Config: v.h.Config(), Data: data, Version: "dev", Built: machine.BuiltAt(""), Connect: v.h.Connect})
	defer d.Close()
	d.Examine(v.t.Context())
	for _, f := range d.Findings {
		fmt.Fprintln(out, f.Part, f.Note)
	}
}
